package main

import (
	"context"
	"log/slog"
	"time"
)

// socketLook is how often sockets' files are looked after: one lstat each. It is as long as an agent that finds nobody waits at most until
// it tries again. Watching with inotify would cost less still, but would have to follow every directory on the way that may be replaced.
const socketLook = 2 * time.Second

// keptSocket is a socket whose file may go away under it.
type keptSocket struct {
	what, flag string // as in socketError
	path       string
	restore    func() (made bool, err error)
}

// keepSockets makes sockets anew whose files are gone or replaced, until ctx ends. Those who are connected do not notice; without it no
// new rank would find an exporter that seems to be well. A failure is logged once for as long as it lasts.
func keepSockets(ctx context.Context, logger *slog.Logger, every time.Duration, sockets ...keptSocket) {
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
			made, err := s.restore()
			switch {
			case err != nil && !failing[i]:
				logger.Error("A socket's file is gone and can't be made again yet; ranks and tools that come now don't find the exporter",
					"err", socketError(s.what, s.flag, s.path, err))
			case made:
				logger.Warn("A socket's file was gone and has been made again", "socket", s.what, "path", s.path)
			case err == nil && failing[i]:
				logger.Info("A socket's file is back", "socket", s.what, "path", s.path)
			}
			failing[i] = err != nil
		}
	}
}
