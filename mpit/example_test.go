package mpit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// A program listens at a socket of its own and prints the variables of the first rank that connects. Here the rank is a
// simulated one; a real one would have been started with the agent preloaded and MPIT_SOCKET set to the same path.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "mpit")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	l, err := mpit.Listen(filepath.Join(dir, "agent.sock"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = l.Close() }()

	rank := mpittest.New(mpittest.Config{
		Hello: mpit.Hello{Rank: 2, Size: 4},
		Variables: []mpit.Variable{
			{Name: "queue_length", Class: mpit.ClassLevel, Datatype: mpit.DatatypeUnsigned, Bind: mpit.BindComm},
		},
		Objects: []mpit.Object{{Kind: mpit.BindComm, Name: "halo"}},
		Values:  []mpittest.Value{{Name: "queue_length", Class: mpit.ClassLevel, Object: 1, Values: []any{17}}},
	})
	if err := rank.Connect(ctx, l.Path()); err != nil {
		log.Fatal(err)
	}
	defer rank.Kill()

	s, err := l.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	sample, err := s.Read(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	for i := range sample.Layout.Handles {
		h := &sample.Layout.Handles[i]
		v := &sample.Variables.ByID[h.Variable]
		for _, word := range sample.Of(h) {
			fmt.Printf("rank %d: %s %s = %g\n", s.Hello().Rank, v.Class, v.Name, v.Datatype.Float64(word))
		}
	}
	// Output: rank 2: LEVEL queue_length = 17
}

// connected returns a rank of a simulated job, in which a communicator's queue is 17 messages long.
func connected(ctx context.Context, dir string) (*mpit.Session, func(), error) {
	l, err := mpit.Listen(filepath.Join(dir, "agent.sock"))
	if err != nil {
		return nil, nil, err
	}
	rank := mpittest.New(mpittest.Config{
		Hello: mpit.Hello{Rank: 2, Size: 4},
		Variables: []mpit.Variable{
			{Name: "messages", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsigned, Bind: mpit.BindComm},
		},
		Objects: []mpit.Object{{Kind: mpit.BindComm, Name: "halo"}},
		Values:  []mpittest.Value{{Name: "messages", Class: mpit.ClassCounter, Object: 1, Values: []any{17}}},
	})
	end := func() {
		rank.Kill()
		_ = l.Close()
	}
	if err := rank.Connect(ctx, l.Path()); err != nil {
		end()
		return nil, nil, err
	}
	s, err := l.Accept(ctx)
	return s, end, err
}

// A tool has a session and handles of its own: they count from their own start, and the return codes of MPI_T are
// errors.
func ExamplePvarSession() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "mpit")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, end, err := connected(ctx, dir)
	if err != nil {
		log.Print(err)
		return
	}
	defer end()
	defer func() { _ = s.Close() }()

	sample, err := s.Read(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	v, _ := sample.Variables.Find("messages", mpit.ClassCounter)
	halo, _ := sample.Layout.Find(mpit.BindComm, "halo")
	p, err := s.CreatePvarSession(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	h, err := p.AllocHandle(ctx, v.ID, halo.ID)
	if err != nil {
		log.Print(err)
		return
	}
	if err := h.Start(ctx); err != nil {
		log.Print(err)
		return
	}
	words, err := h.Read(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("since the start:", v.Datatype.Float64(words[0]))
	fmt.Println("in all:", v.Datatype.Float64(sample.Of(&sample.Layout.Handles[0])[0]))
	_, err = h.ReadReset(ctx)
	fmt.Println(errors.Is(err, mpit.ErrPvarNoAtomic), err)
	// Output:
	// since the start: 0
	// in all: 17
	// true mpit: readreset: MPI_T_ERR_PVAR_NO_ATOMIC: the variable is not atomic
}
