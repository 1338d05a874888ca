/* messages - trouble in point-to-point communication. */
#include "zoo.h"

static int word;

static void receive(int rank, int tag) { MPI_Recv(&word, 1, MPI_INT, place(rank), tag, zoo.comm, MPI_STATUS_IGNORE); }
static void send(int rank, int tag) { MPI_Send(&word, 1, MPI_INT, place(rank), tag, zoo.comm); }

/* With both neighbours, as a stencil has it. */
static void exchange(void)
{
    MPI_Request requests[4];

    MPI_Irecv(words_in, 256, MPI_INT, before(), zoo.tag, zoo.comm, &requests[0]);
    MPI_Irecv(words_in + 256, 256, MPI_INT, next(), zoo.tag + 1, zoo.comm, &requests[1]);
    MPI_Isend(words_out, 256, MPI_INT, next(), zoo.tag, zoo.comm, &requests[2]);
    MPI_Isend(words_out + 256, 256, MPI_INT, before(), zoo.tag + 1, zoo.comm, &requests[3]);
    MPI_Waitall(4, requests, statuses);
}

int main(int argc, char **argv)
{
    begin(argc, argv, MPI_THREAD_SINGLE);

    const int partner = zoo.rank == zoo.partner;

    good_steps(20);
    if (is("receive-cycle")) {
        MPI_Recv(&word, 1, MPI_INT, before(), zoo.tag, zoo.comm, MPI_STATUS_IGNORE);
        MPI_Send(&word, 1, MPI_INT, next(), zoo.tag, zoo.comm);
    }
    if (is("cycle-of-two")) { /* of all ranks, two; the others wait for them in a barrier */
        if (guilty())
            receive(zoo.partner, zoo.tag);
        if (partner)
            receive(zoo.culprit, zoo.tag + 1);
        MPI_Barrier(zoo.comm);
    }
    if (is("cycle-beside-others")) { /* the others go on among themselves */
        MPI_Comm rest;

        MPI_Comm_split(zoo.comm, guilty() || partner, zoo.here, &rest);
        MPI_Comm_set_name(rest, "rest");
        if (guilty())
            receive(zoo.partner, zoo.tag);
        if (partner)
            receive(zoo.culprit, zoo.tag + 1);
        FOREVER {
            compute(0.02);
            MPI_Barrier(rest);
        }
    }
    if (is("wrong-tag")) { /* the culprit waits for a tag that its partner doesn't send, and the partner for an answer */
        if (guilty()) {
            receive(zoo.partner, zoo.tag + 1);
            send(zoo.partner, zoo.tag);
        }
        if (partner) {
            send(zoo.culprit, zoo.tag);
            receive(zoo.culprit, zoo.tag);
        }
        MPI_Barrier(zoo.comm);
    }
    if (is("send-send")) {
        if (guilty() || partner)
            MPI_Send(words_out, MANY, MPI_INT, place(guilty() ? zoo.partner : zoo.culprit), zoo.tag, zoo.comm);
        if (guilty() || partner)
            MPI_Recv(words_in, MANY, MPI_INT, place(guilty() ? zoo.partner : zoo.culprit), zoo.tag, zoo.comm,
                     MPI_STATUS_IGNORE);
        MPI_Barrier(zoo.comm);
    }
    if (is("from-one-in-finalize")) { /* the partner waits for a message of one that is done */
        if (partner)
            receive(zoo.culprit, zoo.tag);
        MPI_Finalize();
        return 0;
    }
    if (is("from-anybody")) /* all wait for a message, nobody sends one */
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, zoo.tag, zoo.comm, MPI_STATUS_IGNORE);
    if (is("request-unmatched")) { /* the partner waits for two messages, and the culprit has sent one */
        MPI_Request requests[2];

        if (partner) {
            MPI_Irecv(words_in, 1, MPI_INT, place(zoo.culprit), zoo.tag, zoo.comm, &requests[0]);
            MPI_Irecv(words_in + 1, 1, MPI_INT, place(zoo.culprit), zoo.tag + 1, zoo.comm, &requests[1]);
            MPI_Waitall(2, requests, statuses);
        }
        if (guilty())
            send(zoo.partner, zoo.tag);
        MPI_Barrier(zoo.comm);
    }
    if (is("probe")) {
        if (partner)
            MPI_Probe(place(zoo.culprit), zoo.tag, zoo.comm, MPI_STATUS_IGNORE);
        MPI_Barrier(zoo.comm);
    }
    if (is("synchronous-unmatched")) { /* to one that has gone on */
        if (partner)
            MPI_Ssend(&word, 1, MPI_INT, place(zoo.culprit), zoo.tag, zoo.comm);
        MPI_Barrier(zoo.comm);
    }
    if (is("late-sender"))
        FOREVER {
            if (guilty()) {
                compute(0.09);
                for (int i = 0; i < zoo.size; i++)
                    if (i != zoo.here)
                        MPI_Send(&word, 1, MPI_INT, i, zoo.tag, zoo.comm);
            } else {
                compute(0.01);
                receive(zoo.culprit, zoo.tag);
            }
        }
    if (is("late-receiver"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            if (guilty())
                for (int i = 1; i < zoo.size; i++)
                    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, zoo.tag, zoo.comm, MPI_STATUS_IGNORE);
            else
                MPI_Ssend(&word, 1, MPI_INT, place(zoo.culprit), zoo.tag, zoo.comm);
        }
    if (is("late-neighbour"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            exchange();
        }
    if (is("late-persistent")) {
        MPI_Request requests[2];

        MPI_Recv_init(words_in, 256, MPI_INT, before(), zoo.tag, zoo.comm, &requests[0]);
        MPI_Send_init(words_out, 256, MPI_INT, next(), zoo.tag, zoo.comm, &requests[1]);
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, statuses);
        }
    }
    if (is("exchange")) /* nothing but communication */
        FOREVER
            MPI_Sendrecv(words_out, MANY, MPI_INT, next(), zoo.tag, words_in, MANY, MPI_INT, before(), zoo.tag, zoo.comm,
                         MPI_STATUS_IGNORE);
    unknown_kind();
    return 1;
}
