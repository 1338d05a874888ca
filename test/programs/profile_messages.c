/*
 * profile_messages DIR [FAMILY ...]: point-to-point calls of every kind, between neighbours on communicator "ring",
 * with books (books.h). Families: blocking, types, nothing, errors, nonblocking, completion, persistent, partitioned,
 * probes, large, off; all of them if none is named. Two rounds: hold points "half" and "done". The books of the end
 * are named "end".
 */
#include "books.h"

#define RING "comm:ring"

static MPI_Comm ring;
static int rank, size, next, before;
static int out[100], in[100];

/*
 * One message of COUNT of TYPE (BYTES bytes in all) to the next rank by FUNCTION; the one from the rank before is
 * received by RECEIVE.
 */
#define PASS(function, bytes, count, type, receive)                                     \
    do {                                                                                \
        if (rank % 2 == 1)                                                              \
            receive;                                                                    \
        DO(RING, SENT(bytes), NONE, function, out, count, type, next, 1, ring);         \
        if (rank % 2 == 0)                                                              \
            receive;                                                                    \
    } while (0)

/* Into a buffer that has more room than what comes needs: what has come counts. */
#define RECEIVE(bytes, status) DO(RING, NONE, RECEIVED(bytes), MPI_Recv, in, 100, MPI_INT, before, 1, ring, status)

static void blocking(void)
{
    static char buffer[1000 + MPI_BSEND_OVERHEAD];
    void *detached;
    int length;
    MPI_Status status;
    MPI_Request request;

    for (int i = 0; i < 100; i++)
        out[i] = rank * 100 + i;
    PASS(MPI_Send, 40, 10, MPI_INT, RECEIVE(40, &status));
    EXPECT(in[9] == before * 100 + 9 && status.MPI_SOURCE == before);
    PASS(MPI_Send, 400, 100, MPI_INT, RECEIVE(400, MPI_STATUS_IGNORE));
    PASS(MPI_Ssend, 4, 1, MPI_INT, RECEIVE(4, MPI_STATUS_IGNORE));
    MPI_Buffer_attach(buffer, sizeof buffer);
    PASS(MPI_Bsend, 24, 6, MPI_INT, RECEIVE(24, &status));
    DO("-", NONE, NONE, MPI_Buffer_detach, &detached, &length); /* waits until all has gone out */
    PASS(MPI_Send, 12, 3, MPI_INT, DO(RING, NONE, RECEIVED(12), MPI_Recv, in, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ring,
         MPI_STATUS_IGNORE));

    /* What is sent ready needs a receive that is there: both post it, then tell each other. */
    DO(RING, POSTED(400), NONE, MPI_Irecv, in, 100, MPI_INT, before, 2, ring, &request);
    DO(RING, SENT(8), RECEIVED(8), MPI_Sendrecv, out, 2, MPI_INT, before, 3, in + 50, 50, MPI_INT, next, 3, ring, MPI_STATUS_IGNORE);
    DO(RING, SENT(20), NONE, MPI_Rsend, out, 5, MPI_INT, next, 2, ring);
    DO("-", NONE, NONE, MPI_Wait, &request, &status);

    DO(RING, SENT(28), RECEIVED(28), MPI_Sendrecv, out, 7, MPI_INT, next, 4, in, 100, MPI_INT, before, 4, ring, &status);
    DO(RING, SENT(36), RECEIVED(36), MPI_Sendrecv_replace, in, 9, MPI_INT, next, 5, before, 5, ring, &status);
    DO(RING, SENT(36), RECEIVED(36), MPI_Sendrecv_replace, in, 9, MPI_INT, next, 5, before, 5, ring, MPI_STATUS_IGNORE);

    /* Each rank says a number of its own, and the next one does not know it before. */
    DO(RING, SENT(4 * (rank + 1)), RECEIVED(4 * (before + 1)), MPI_Sendrecv, out, rank + 1, MPI_INT, next, 6, in, 100, MPI_INT,
       before, 6, ring, &status);

    /* A message to oneself, on a communicator that nobody has named. */
    DO("comm:MPI_COMM_SELF", POSTED(8), NONE, MPI_Irecv, in, 2, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    DO("comm:MPI_COMM_SELF", SENT(8), NONE, MPI_Send, out, 2, MPI_INT, 0, 1, MPI_COMM_SELF);
    DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);
}

/* The bytes of a datatype are its size, not its extent; of one that has another's handle, its own. */
static void types(void)
{
    MPI_Datatype column, pair;
    static double wide[20];

    MPI_Type_vector(3, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    PASS(MPI_Send, 24, 2, column, RECEIVE(24, MPI_STATUS_IGNORE));
    DO(RING, SENT(36), RECEIVED(36), MPI_Sendrecv, out, 3, column, next, 1, in, 3, column, before, 1, ring, MPI_STATUS_IGNORE);
    MPI_Type_free(&column);
    for (int n = 1; n <= 10; n++) {
        MPI_Type_contiguous(n, MPI_SHORT, &pair);
        MPI_Type_commit(&pair);
        DO(RING, SENT(6 * n), RECEIVED(6 * n), MPI_Sendrecv, out, 3, pair, next, n, in, 3, pair, before, n, ring, MPI_STATUS_IGNORE);
        MPI_Type_free(&pair);
    }
    DO(RING, SENT(24), RECEIVED(24), MPI_Sendrecv, wide, 2, MPI_DOUBLE_INT, next, 1, wide + 10, 4, MPI_DOUBLE_INT, before, 1, ring,
       MPI_STATUS_IGNORE);
    DO(RING, SENT(3), RECEIVED(3), MPI_Sendrecv, wide, 3, MPI_BYTE, next, 1, wide + 10, 10, MPI_BYTE, before, 1, ring,
       MPI_STATUS_IGNORE);
}

/* Nothing is moved: no elements, or nobody there. */
static void nothing(void)
{
    MPI_Request request;
    MPI_Status status;

    PASS(MPI_Send, 0, 0, MPI_INT, RECEIVE(0, &status));
    DO(RING, NONE, NONE, MPI_Send, out, 10, MPI_INT, MPI_PROC_NULL, 0, ring);
    DO(RING, NONE, NONE, MPI_Ssend, out, 10, MPI_INT, MPI_PROC_NULL, 0, ring);
    DO(RING, NONE, NONE, MPI_Recv, in, 10, MPI_INT, MPI_PROC_NULL, 0, ring, &status);
    DO(RING, NONE, NONE, MPI_Recv, in, 10, MPI_INT, MPI_PROC_NULL, 0, ring, MPI_STATUS_IGNORE);
    DO(RING, NONE, NONE, MPI_Isend, out, 10, MPI_INT, MPI_PROC_NULL, 0, ring, &request);
    DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);
    DO(RING, NONE, NONE, MPI_Irecv, in, 10, MPI_INT, MPI_PROC_NULL, 0, ring, &request);
    DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);
    DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE); /* for no request at all */
    /* Along a line: the first has nobody to receive from, the last nobody to send to. */
    DO(RING, SENT(rank + 1 < size ? 16 : 0), RECEIVED(rank > 0 ? 16 : 0), MPI_Sendrecv, out, 4, MPI_INT,
       rank + 1 < size ? next : MPI_PROC_NULL, 1, in, 50, MPI_INT, rank > 0 ? before : MPI_PROC_NULL, 1, ring, MPI_STATUS_IGNORE);
    DO(RING, SENT(rank + 1 < size ? 16 : 0), RECEIVED(rank > 0 ? 16 : 0), MPI_Sendrecv_replace, out, 4, MPI_INT,
       rank + 1 < size ? next : MPI_PROC_NULL, 1, rank > 0 ? before : MPI_PROC_NULL, 1, ring, &status);
}

/* What fails is a call like any other, but has moved nothing. */
static void errors(void)
{
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    DO_IN_VAIN(RING, MPI_Send, out, 10, MPI_INT, size + 5, 0, ring);
    DO_IN_VAIN(RING, MPI_Recv, in, -1, MPI_INT, before, 0, ring, MPI_STATUS_IGNORE);
    /* A message that is too long for where it goes. */
    PASS(MPI_Send, 40, 10, MPI_INT, DO_IN_VAIN(RING, MPI_Recv, in, 5, MPI_INT, before, 1, ring, MPI_STATUS_IGNORE));
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_ARE_FATAL);
}

static void nonblocking(void)
{
    static char buffer[1000 + MPI_BSEND_OVERHEAD];
    void *detached;
    int length;
    MPI_Request requests[8];
    MPI_Status statuses[8];

    /* A receive without waiting tells what there is room for, not what comes. */
    for (int i = 0; i < 4; i++)
        DO(RING, NONE, POSTED(80), MPI_Irecv, in + 20 * i, 20, MPI_INT, before, i, ring, &requests[i]);
    DO(RING, SENT(4), RECEIVED(4), MPI_Sendrecv, out, 1, MPI_INT, before, 9, out + 1, 1, MPI_INT, next, 9, ring,
       MPI_STATUS_IGNORE); /* all are posted */
    MPI_Buffer_attach(buffer, sizeof buffer);
    DO(RING, SENT(4), NONE, MPI_Isend, out, 1, MPI_INT, next, 0, ring, &requests[4]);
    DO(RING, SENT(8), NONE, MPI_Issend, out, 2, MPI_INT, next, 1, ring, &requests[5]);
    DO(RING, SENT(12), NONE, MPI_Ibsend, out, 3, MPI_INT, next, 2, ring, &requests[6]);
    DO(RING, SENT(16), NONE, MPI_Irsend, out, 4, MPI_INT, next, 3, ring, &requests[7]);
    DO("-", NONE, NONE, MPI_Waitall, 8, requests, statuses);
    DO("-", NONE, NONE, MPI_Buffer_detach, &detached, &length);
#if MPI_VERSION >= 4
    DO(RING, SENT(20), POSTED(80), MPI_Isendrecv, out, 5, MPI_INT, next, 4, in, 20, MPI_INT, before, 4, ring, &requests[0]);
    DO("-", NONE, NONE, MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
    DO(RING, SENT(24), POSTED(24), MPI_Isendrecv_replace, in, 6, MPI_INT, next, 4, before, 4, ring, &requests[0]);
    DO("-", NONE, NONE, MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
#endif

    /* One that is taken back. */
    DO(RING, NONE, POSTED(40), MPI_Irecv, in, 10, MPI_INT, before, 77, ring, &requests[0]);
    MPI_Cancel(&requests[0]);
    DO("-", NONE, NONE, MPI_Wait, &requests[0], &statuses[0]);
}

/* COUNT messages of one integer each way, with requests 0 to COUNT-1 those that receive. */
static void post(MPI_Request *requests, int count)
{
    for (int i = 0; i < count; i++)
        DO(RING, NONE, POSTED(4), MPI_Irecv, in + i, 1, MPI_INT, before, i, ring, &requests[i]);
    for (int i = 0; i < count; i++)
        DO(RING, SENT(4), NONE, MPI_Isend, out + i, 1, MPI_INT, next, i, ring, &requests[count + i]);
}

/* Each call counts, those that have found nothing as well. */
static void completion(void)
{
    MPI_Request r[6];
    MPI_Status s[6];
    int flag, index, indices[6], count, done;

    post(r, 3);
    for (int i = 0; i < 6; i++)
        DO("-", NONE, NONE, MPI_Wait, &r[i], i % 2 ? &s[i] : MPI_STATUS_IGNORE);
    post(r, 3);
    DO("-", NONE, NONE, MPI_Waitall, 6, r, MPI_STATUSES_IGNORE);
    post(r, 3);
    for (int i = 0; i < 6; i++)
        DO("-", NONE, NONE, MPI_Waitany, 6, r, &index, MPI_STATUS_IGNORE);
    post(r, 3);
    for (done = 0; done < 6; done += count)
        DO("-", NONE, NONE, MPI_Waitsome, 6, r, &count, indices, s);
    post(r, 3);
    for (int i = 0; i < 6; i++) {
        for (flag = 0; !flag;)
            DO("-", NONE, NONE, MPI_Request_get_status, r[i], &flag, &s[i]);
        for (flag = 0; !flag;)
            DO("-", NONE, NONE, MPI_Test, &r[i], &flag, MPI_STATUS_IGNORE);
    }
    post(r, 3);
    for (flag = 0; !flag;)
        DO("-", NONE, NONE, MPI_Testall, 6, r, &flag, s);
    post(r, 3);
    for (done = 0; done < 6; done += flag)
        DO("-", NONE, NONE, MPI_Testany, 6, r, &index, &flag, &s[0]);
    post(r, 3);
    for (done = 0; done < 6; done += count)
        DO("-", NONE, NONE, MPI_Testsome, 6, r, &count, indices, MPI_STATUSES_IGNORE);
}

static void persistent(void)
{
    static char buffer[1000 + MPI_BSEND_OVERHEAD];
    void *detached;
    int length;
    MPI_Request r[6];

    for (int i = 0; i < 3; i++)
        DO(RING, NONE, NONE, MPI_Recv_init, in + 10 * i, 10, MPI_INT, before, i, ring, &r[i]);
    DO(RING, NONE, NONE, MPI_Send_init, out, 10, MPI_INT, next, 0, ring, &r[3]);
    DO(RING, NONE, NONE, MPI_Ssend_init, out, 10, MPI_INT, next, 1, ring, &r[4]);
    DO(RING, NONE, NONE, MPI_Bsend_init, out, 10, MPI_INT, next, 2, ring, &r[5]);
    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int i = 0; i < 4; i++) {
        DO("-", NONE, NONE, MPI_Startall, 6, r);
        DO("-", NONE, NONE, MPI_Waitall, 6, r, MPI_STATUSES_IGNORE);
    }
    DO("-", NONE, NONE, MPI_Buffer_detach, &detached, &length);
    for (int i = 1; i < 6; i++)
        MPI_Request_free(&r[i]);

    DO(RING, NONE, NONE, MPI_Rsend_init, out, 10, MPI_INT, next, 0, ring, &r[1]);
    DO("-", NONE, NONE, MPI_Start, &r[0]);
    DO(RING, SENT(4), RECEIVED(4), MPI_Sendrecv, out, 1, MPI_INT, before, 9, out + 1, 1, MPI_INT, next, 9, ring, MPI_STATUS_IGNORE);
    DO("-", NONE, NONE, MPI_Start, &r[1]);
    DO("-", NONE, NONE, MPI_Waitall, 2, r, MPI_STATUSES_IGNORE);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

/* Messages in parts: nothing tells the bytes, as of all that is persistent. */
static void partitioned(void)
{
#if MPI_VERSION >= 4
    MPI_Request r[2];
    int flag;

    DO(RING, NONE, NONE, MPI_Precv_init, in, 4, 5, MPI_INT, before, 1, ring, MPI_INFO_NULL, &r[0]);
    DO(RING, NONE, NONE, MPI_Psend_init, out, 4, 5, MPI_INT, next, 1, ring, MPI_INFO_NULL, &r[1]);
    DO("-", NONE, NONE, MPI_Startall, 2, r);
    DO("-", NONE, NONE, MPI_Pready, 0, r[1]);
    DO("-", NONE, NONE, MPI_Pready_range, 1, 2, r[1]);
    DO("-", NONE, NONE, MPI_Pready_list, 1, (int[]){3}, r[1]);
    DO("-", NONE, NONE, MPI_Parrived, r[0], 0, &flag);
    DO("-", NONE, NONE, MPI_Waitall, 2, r, MPI_STATUSES_IGNORE);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
#endif
}

static void probes(void)
{
    MPI_Message message;
    MPI_Request request, sends[6];
    MPI_Status status;
    int flag;

    for (int i = 0; i < 6; i++)
        DO(RING, SENT(4 * i + 4), NONE, MPI_Isend, out, i + 1, MPI_INT, next, 10 + i, ring, &sends[i]);
    DO(RING, NONE, NONE, MPI_Probe, before, 10, ring, &status);
    DO(RING, NONE, NONE, MPI_Probe, before, 10, ring, MPI_STATUS_IGNORE);
    DO(RING, NONE, RECEIVED(4), MPI_Recv, in, 100, MPI_INT, before, 10, ring, MPI_STATUS_IGNORE);
    for (flag = 0; !flag;)
        DO(RING, NONE, NONE, MPI_Iprobe, before, 11, ring, &flag, &status);
    DO(RING, NONE, RECEIVED(8), MPI_Recv, in, 100, MPI_INT, before, 11, ring, MPI_STATUS_IGNORE);
    DO(RING, NONE, NONE, MPI_Iprobe, before, 99, ring, &flag, MPI_STATUS_IGNORE);
    EXPECT(!flag);

    /* Of a message that has been matched nobody knows any more on which communicator it came. */
    DO(RING, NONE, NONE, MPI_Mprobe, before, 12, ring, &message, &status);
    DO("-", NONE, RECEIVED(12), MPI_Mrecv, in, 100, MPI_INT, &message, &status);
    DO(RING, NONE, NONE, MPI_Mprobe, before, 13, ring, &message, MPI_STATUS_IGNORE);
    DO("-", NONE, RECEIVED(16), MPI_Mrecv, in, 100, MPI_INT, &message, MPI_STATUS_IGNORE);
    for (flag = 0; !flag;)
        DO(RING, NONE, NONE, MPI_Improbe, before, 14, ring, &flag, &message, MPI_STATUS_IGNORE);
    DO("-", NONE, RECEIVED(20), MPI_Mrecv, in, 100, MPI_INT, &message, MPI_STATUS_IGNORE);
    DO(RING, NONE, NONE, MPI_Mprobe, before, 15, ring, &message, &status);
    DO("-", NONE, POSTED(400), MPI_Imrecv, in, 100, MPI_INT, &message, &request);
    DO("-", NONE, NONE, MPI_Wait, &request, &status);
    DO(RING, NONE, NONE, MPI_Mprobe, MPI_PROC_NULL, 0, ring, &message, &status);
    DO("-", NONE, NONE, MPI_Mrecv, in, 100, MPI_INT, &message, &status);
    DO("-", NONE, NONE, MPI_Waitall, 6, sends, MPI_STATUSES_IGNORE);
}

/* The functions of MPI-4 for large counts count as the plain ones. */
static void large(void)
{
#if MPI_VERSION >= 4
    MPI_Request r[2];

    PASS(MPI_Send_c, 40, 10, MPI_INT, DO(RING, NONE, RECEIVED(40), MPI_Recv_c, in, 100, MPI_INT, before, 1, ring, MPI_STATUS_IGNORE));
    PASS(MPI_Ssend_c, 44, 11, MPI_INT, DO(RING, NONE, RECEIVED(44), MPI_Recv_c, in, 100, MPI_INT, before, 1, ring, MPI_STATUS_IGNORE));
    DO(RING, SENT(28), RECEIVED(28), MPI_Sendrecv_c, out, 7, MPI_INT, next, 4, in, 100, MPI_INT, before, 4, ring, MPI_STATUS_IGNORE);
    DO(RING, SENT(36), RECEIVED(36), MPI_Sendrecv_replace_c, in, 9, MPI_INT, next, 5, before, 5, ring, MPI_STATUS_IGNORE);
    DO(RING, NONE, POSTED(400), MPI_Irecv_c, in, 100, MPI_INT, before, 5, ring, &r[0]);
    DO(RING, SENT(20), NONE, MPI_Isend_c, out, 5, MPI_INT, next, 5, ring, &r[1]);
    DO("-", NONE, NONE, MPI_Waitall, 2, r, MPI_STATUSES_IGNORE);
    DO(RING, NONE, NONE, MPI_Recv_init_c, in, 100, MPI_INT, before, 5, ring, &r[0]);
    DO(RING, NONE, NONE, MPI_Send_init_c, out, 5, MPI_INT, next, 5, ring, &r[1]);
    DO("-", NONE, NONE, MPI_Startall, 2, r);
    DO("-", NONE, NONE, MPI_Waitall, 2, r, MPI_STATUSES_IGNORE);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
#endif
}

/* What is called while the program has switched observation off isn't counted; what comes after it is, whatever began
 * before. */
static void off(void)
{
    MPI_Request r[2];
    MPI_Comm quiet;

    MPI_Pcontrol(0);
    MPI_Sendrecv(out, 7, MPI_INT, next, 4, in, 100, MPI_INT, before, 4, ring, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, ring); /* called nowhere else */
    MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
    MPI_Comm_set_name(quiet, "quiet");
    MPI_Sendrecv(out, 7, MPI_INT, next, 4, in, 100, MPI_INT, before, 4, quiet, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 100, MPI_INT, before, 5, quiet, &r[0]);
    MPI_Isend(out, 7, MPI_INT, next, 5, quiet, &r[1]);
    MPI_Pcontrol(1);
    DO("-", NONE, NONE, MPI_Waitall, 2, r, MPI_STATUSES_IGNORE);
    DO("comm:quiet", SENT(28), RECEIVED(28), MPI_Sendrecv, out, 7, MPI_INT, next, 4, in, 100, MPI_INT, before, 4, quiet,
       MPI_STATUS_IGNORE);
    MPI_Pcontrol(0);
    MPI_Comm_free(&quiet);
    MPI_Pcontrol(1);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    static const struct {
        const char *name;
        void (*calls)(void);
    } families[] = {
        {"blocking", blocking}, {"types", types}, {"nothing", nothing}, {"errors", errors}, {"nonblocking", nonblocking},
        {"completion", completion},
        {"persistent", persistent}, {"partitioned", partitioned}, {"probes", probes}, {"large", large}, {"off", off},
    };

    MPI_Init(&argc, &argv);
    DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &ring);
    MPI_Comm_set_name(ring, "ring");
    MPI_Comm_rank(ring, &rank);
    MPI_Comm_size(ring, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
            if (books_wanted(families[i].name, argc, argv))
                families[i].calls();
        books_hold(dir, round == 0 ? "half" : "done", rank);
    }
    DO("-", NONE, NONE, MPI_Comm_free, &ring);
    books_leave(dir, "end", rank);
    MPI_Finalize();
    if (rank == 0)
        puts("profile_messages: done");
    return 0;
}
