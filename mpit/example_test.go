package mpit_test

import (
	"context"
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
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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
