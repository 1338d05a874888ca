// Command simulated plays the ranks of an MPI job where there is no MPI library: the demo's last resort. Everything
// that it says is made up, and its library, host and job are called simulated.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func main() {
	app := kingpin.New("simulated", "Plays the ranks of an MPI job, with made-up figures.")
	socket := app.Flag("socket", "Socket of the exporter.").Required().String()
	ranks := app.Flag("ranks", "How many ranks.").Default("4").Int()
	kingpin.MustParse(app.Parse(os.Args[1:]))
	if *ranks < 1 {
		app.Fatalf("--ranks %d: must be at least 1", *ranks)
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := mpittest.NewJob(*ranks).Run(ctx, *socket); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "simulated:", err)
		os.Exit(1)
	}
}
