package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// service is a part of the exporter that runs until it is stopped.
type service struct {
	stop context.CancelFunc
	done chan struct{} // closed when it has ended
	err  error         // of a service that was stopped
}

// begin starts a service. If it ends before it is stopped and before ctx ends, failed is told, whatever the reason;
// it must have room for one error of each service.
func begin(ctx context.Context, what string, failed chan<- error, run func(ctx context.Context) error) *service {
	s := &service{done: make(chan struct{})}
	ctx, s.stop = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		err := run(ctx)
		switch {
		case ctx.Err() == nil:
			failed <- fmt.Errorf("%s ended: %w", what, cmp.Or(err, errors.New("no reason given")))
		case !errors.Is(err, context.Canceled):
			s.err = err
		}
	}()
	return s
}

// end stops the service and waits for its end. The error is one of ending; what made it fail before has been told.
func (s *service) end() error {
	s.stop()
	<-s.done
	return s.err
}

// Front is a way on which figures leave a node, besides OTLP.
type Front struct {
	What  string                          // for errors
	Serve func(ctx context.Context) error // until ctx ends, and with it what is under way
	Ready func(bool)                      // is told when it is ready, and when it is no more
}

// Run raises the sandbox, which leaves the process what the command needs, before any rank or scraper is listened to.
// Then it serves everything until ctx or a service ends, and ends all in order: reloads; requests and scrapes under way
// and a last push, which still need the ranks; then the ranks. f may be nil.
func (n *Node) Run(ctx context.Context, needs Needs, f *Front) error {
	n.enclose(needs)
	detached := context.WithoutCancel(ctx)
	failed := make(chan error, 5) // one for each service
	nothing := func(ctx context.Context) error { <-ctx.Done(); return nil }

	ranks := begin(detached, "serving ranks on "+n.socket.Path(), failed, func(ctx context.Context) error {
		return n.Exporter.Serve(ctx, n.socket.Listener)
	})
	if f == nil {
		f = &Front{Serve: nothing, Ready: func(bool) {}}
	}
	scrapes := begin(detached, "serving "+f.What, failed, f.Serve)
	answers := nothing
	if n.control != nil {
		answers = func(ctx context.Context) error { return n.Exporter.Control().Serve(ctx, n.control) }
	}
	control := begin(detached, "serving the control socket", failed, answers)
	pushes := begin(detached, "pushing", failed, n.push)

	f.Ready(true)
	notify(n.Logger, daemon.SdNotifyReady)
	n.reloads <- struct{}{} // not before systemd has been told, which may now be told that the exporter is reloading
	reloads := begin(ctx, "reloading", failed, n.onHangups)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}

	f.Ready(false)
	_ = reloads.end()
	<-n.reloads // after a reload that is under way
	close(n.reloads)
	notify(n.Logger, daemon.SdNotifyStopping)
	n.Logger.Info("Ending")
	control.stop()
	pushes.stop() // which goes on for as long as a push may take
	err = errors.Join(err, scrapes.end(), control.end(), pushes.end())
	return errors.Join(err, ranks.end())
}

// push pushes until ctx ends, and once more. That it fails keeps nobody from scraping, and is no error.
func (n *Node) push(ctx context.Context) error {
	if n.Pusher == nil {
		<-ctx.Done()
	} else if err := n.Pusher.Run(ctx); err != nil {
		n.Logger.Warn("The last push has failed", "err", err)
	}
	return nil
}

// notify tells systemd, if it wants to know.
func notify(logger *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		logger.Warn("Cannot notify systemd", "state", state, "err", err)
	}
}
