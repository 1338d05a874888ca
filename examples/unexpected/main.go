// Command unexpected tells which ranks of a running job have many messages waiting that they have not asked for yet:
// the tool that MPI-4.1 §15.3.7 writes in C, to be linked with the program, from outside and for all ranks at once.
// It looks at the messages of one communicator, of Open MPI, and is silent as long as no more wait than the threshold
// allows.
//
//	go build -o bin/ ./examples/unexpected
//	bin/unexpected -socket /tmp/unexpected.sock &
//	MPIT_SOCKET=/tmp/unexpected.sock mpirun -n 4 mpit-exporter exec -- ./app
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// variable is Open MPI's: how many messages wait in a communicator, by the rank in it that they come from.
const variable = "pml_ob1_unexpected_msgq_length"

func main() {
	socket := flag.String("socket", "/tmp/unexpected.sock", "where to listen; MPIT_SOCKET tells it to the job")
	comm := flag.String("comm", "MPI_COMM_WORLD", "the communicator, by its name")
	threshold := flag.Uint64("threshold", 10, "how many messages of one rank may wait in it and not be told of")
	every := flag.Duration("every", time.Second, "how often to look")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *socket, *comm, *threshold, *every)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run listens until the context ends, and watches all ranks that connect, each in a goroutine of its own.
func run(ctx context.Context, out io.Writer, socket, comm string, threshold uint64, every time.Duration) error {
	l, err := mpit.Listen(socket)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "start the job with MPIT_SOCKET=%s\n", l.Path())
	err = l.Serve(ctx, func(ctx context.Context, s *mpit.Session) { watch(ctx, out, s, comm, threshold, every) }, nil)
	return errors.Join(err, l.Close())
}

// watch looks at a rank until it or the context ends. A rank that never has the variable is one that has nothing to
// tell.
func watch(ctx context.Context, out io.Writer, s *mpit.Session, comm string, threshold uint64, every time.Duration) {
	defer s.Close() // and with it ends what the tool has in the rank
	var handle *mpit.PvarHandle
	session, err := s.CreatePvarSession(ctx)
	for tick := time.Tick(every); err == nil && handle == nil; <-tick {
		var sample mpit.Sample
		sample, err = s.Read(ctx)
		v, known := sample.Variables.Find(variable, mpit.ClassSize)
		object, there := sample.Layout.Find(mpit.BindComm, comm)
		if known && there {
			handle, err = session.AllocHandle(ctx, v.ID, object.ID)
			err = errors.Join(err, session.StartAll(ctx)) // where it isn't continuous
		}
	}
	for tick := time.Tick(every); err == nil; <-tick {
		var lengths []uint64
		lengths, err = handle.Read(ctx)
		for from, n := range lengths {
			if n > threshold {
				fmt.Fprintf(out, "rank %d: %d unexpected messages from rank %d\n", s.Hello().Rank, n, from)
			}
		}
	}
	if ctx.Err() == nil && s.Err() == nil && !errors.Is(err, mpit.ErrFinal) { // neither we nor the rank have ended
		fmt.Fprintf(out, "rank %d: %v\n", s.Hello().Rank, err)
	}
}
