package sockets

import (
	"context"
	"log/slog"
	"time"
)

// LookInterval is how often sockets' files are looked after: one lstat each. It is as long as an agent that finds
// nobody waits at most until it tries again. Watching with inotify would cost less still, but would have to follow
// every directory on the way that may be replaced.
const LookInterval = 2 * time.Second

// Watched is a socket whose file may go away under it.
type Watched struct {
	What, Flag string // as in socketError
	Path       string
	Restore    func() (made bool, err error)
}

// Watch makes sockets anew whose files are gone or replaced, until ctx ends. Those who are connected do not notice;
// without it no new rank would find an exporter that seems to be well. A failure is logged once for as long as it
// lasts.
func Watch(ctx context.Context, logger *slog.Logger, every time.Duration, sockets ...Watched) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	failing := make([]bool, len(sockets))
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i, s := range sockets {
			made, err := s.Restore()
			switch {
			case err != nil && !failing[i]:
				logger.Error("A socket's file is gone and can't be made again yet; ranks and tools that come now "+
					"don't find the exporter",
					"err", socketError(s.What, s.Flag, s.Path, err))
			case made:
				logger.Warn("A socket's file was gone and has been made again", "socket", s.What, "path", s.Path)
			case err == nil && failing[i]:
				logger.Info("A socket's file is back", "socket", s.What, "path", s.Path)
			}
			failing[i] = err != nil
		}
	}
}
