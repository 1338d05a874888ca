package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// ownFirst is how long an exporter waits for the first process: the one that has started it comes at once, if it lives.
	ownFirst = 30 * time.Second
	// ownLook is how often it looks whether all is over, once no process is there.
	ownLook = 200 * time.Millisecond
)

// ownMode is what makes an exporter one launch's own.
type ownMode struct {
	order ownOrder
	base  *ownBase
	dir   *ownDir
	pipe  *os.File

	first, look time.Duration // ownFirst, ownLook, but in tests

	pushing *pushing   // nil: nothing is pushed
	finals  *finalPush // the same

	sd       string // path of the file-SD file; empty: none
	presence *presence
	begun    bool // it has said that it serves
}

// serveOwn is the exporter that exec --own starts.
func serveOwn(ctx context.Context, path string, std stdio) error {
	pipe := os.NewFile(ownPipeFD, "pipe")
	own, serve, err := openOwn(path, pipe)
	if err == nil {
		serve.own = own
		err = serve.run(ctx, std)
		own.end()
	}
	if err != nil {
		answerOwn(pipe, ownAnswer{Error: inFlagsOfExec(err)}) // refused, if there has been an answer
	}
	return err
}

// inFlagsOfExec is the error as somebody can use it who has given flags to exec, not to serve.
func inFlagsOfExec(err error) string {
	return strings.NewReplacer("--web.listen-address", "--own.listen", "--web.config.file", "--own.web-config").Replace(err.Error())
}

// openOwn takes over what exec hands on.
func openOwn(path string, pipe *os.File) (*ownMode, *serveCommand, error) {
	for _, fd := range []int{ownLockFD, ownPipeFD} {
		unix.CloseOnExec(fd) // getent is run later
	}
	unix.Umask(0o077)
	own := &ownMode{
		dir: &ownDir{path: path, lock: os.NewFile(ownLockFD, path)}, pipe: pipe,
		first: ownFirst, look: ownLook,
	}
	if err := json.Unmarshal([]byte(os.Getenv(envOwn)), &own.order); err != nil {
		return nil, nil, fmt.Errorf("%s %s is for %s exec --own alone: reading its settings: %w", programName, ownCommand, programName, err)
	}
	if err := os.Unsetenv(envOwn); err != nil {
		return nil, nil, fmt.Errorf("clearing the settings: %w", err)
	}
	var err error
	if own.order.Host, err = os.Hostname(); err != nil {
		return nil, nil, fmt.Errorf("finding this node's name: %w", err)
	}
	if own.base, err = openBase(filepath.Dir(filepath.Dir(path))); err != nil {
		return nil, nil, err
	}
	if own.dir.dir, err = openPrivate(int(own.base.dir.Fd()), filepath.Base(path), path); err != nil {
		return nil, nil, err
	}
	app := kingpin.New(programName, "")
	app.UsageWriter(io.Discard)
	app.ErrorWriter(io.Discard)
	serve := newServeCommand(app)
	if _, err := app.Parse(append([]string{serve.name, "--log.level=warn"}, own.order.Serve...)); err != nil {
		return nil, nil, fmt.Errorf("settings of the exporter: %w", err)
	}
	return own, serve, nil
}

// listenOptions are the agent socket's: its directory is the user's alone, and so is the socket.
func (o *ownMode) listenOptions() []mpit.ListenOption {
	if o == nil {
		return nil
	}
	options := []mpit.ListenOption{mpit.WithMode(0o600)}
	if o.order.Wait > 0 {
		options = append(options, mpit.WithHeldFinals())
	}
	return options
}

// finalTaken is exporter.Config's.
func (o *ownMode) finalTaken() func(ctx context.Context) {
	if o == nil || o.order.Wait <= 0 {
		return nil
	}
	return func(ctx context.Context) {
		if o.finals != nil {
			o.finals.await(ctx)
		}
	}
}

// pushes says how figures are pushed, before any rank is listened to.
func (o *ownMode) pushes(p *pushing) {
	if o == nil {
		return
	}
	o.pushing = p
	o.finals = &finalPush{push: p.pusher.PushEnded, wait: o.order.Wait, log: p.logger}
}

// paged says whether there is a page at all.
func (o *ownMode) paged() bool { return o == nil || o.order.Page }

// page is where scrapers find it.
type page struct {
	listeners []net.Listener
	tls       bool
	path      string
}

func (p page) scheme() string {
	if p.tls {
		return "https"
	}
	return "http"
}

// fence adds what it needs at its end.
func (o *ownMode) fence(f *fence) {
	if o == nil {
		return
	}
	// Its directory, and that of all launches.
	f.made = append(f.made, o.dir.path, o.base.path)
	if o.sd != "" {
		f.removed = append(f.removed, o.sd)
	}
}

// prepare makes what stands in the file system, before the fence is up.
func (o *ownMode) prepare(p page, logger *slog.Logger) error {
	if o == nil {
		return nil
	}
	if o.order.SDDir != "" && o.order.Page {
		path := sdPath(o.order.SDDir, o.order.Host, filepath.Base(o.dir.path))
		// First where it will be, so that it is found whatever happens.
		if err := os.WriteFile(o.dir.file(ownSDFile), []byte(path), 0o600); err != nil {
			return fmt.Errorf("noting the file-SD file: %w", err)
		}
		if err := writeSD(path, target{addresses(p.listeners, o.order.Host), sdLabels(&o.order, p.scheme(), p.path)}); err != nil {
			return err
		}
		o.sd = path
	}
	var err error
	o.presence, err = newPresence(o.dir.file(ownSocketFile), logger)
	return err
}

// begin says that the exporter serves. The context that it returns ends when the launch is over and its last values have been taken, or
// their time is.
func (o *ownMode) begin(ctx context.Context, e *exporter.Exporter, p page, logger *slog.Logger) context.Context {
	if o == nil {
		return ctx
	}
	var answer ownAnswer
	for _, address := range addresses(p.listeners, o.order.Host) {
		answer.Lines = append(answer.Lines, fmt.Sprintf("metrics of this job at %s://%s%s", p.scheme(), address, p.path))
	}
	if o.pushing != nil {
		answer.Lines = append(answer.Lines, "metrics of this job are pushed to "+o.pushing.config.Endpoint)
	}
	answerOwn(o.pipe, answer)
	o.begun = true
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		o.awaitEnd(ctx, e.Remaining, logger)
	}()
	return ctx
}

// awaitEnd returns when all processes have ended and the last values have been taken, or nobody takes them.
func (o *ownMode) awaitEnd(ctx context.Context, remaining func() (living, untaken int), logger *slog.Logger) {
	began := time.Now()
	var over time.Time // since when the last values wait to be taken; zero: they don't
	seen := false      // there has been somebody
	for {
		var look <-chan time.Time
		present, came := o.presence.count()
		if present == 0 {
			living, untaken := remaining()
			seen = seen || came || living > 0 || untaken > 0
			switch {
			case living > 0:
				over = time.Time{}
			case untaken > 0 && over.IsZero():
				over = time.Now()
				logger.Debug("The launch has ended", "ranks_to_be_scraped", untaken)
			}
			ended := living == 0 && (seen || time.Since(began) >= o.first)
			if ended && (untaken == 0 || time.Since(over) >= o.order.Linger) && o.presence.retire() {
				if untaken > 0 {
					logger.Warn("Nobody has scraped the last values", "ranks", untaken, "linger", o.order.Linger)
				}
				return
			}
			look = time.After(o.look)
		}
		select {
		case <-ctx.Done():
			return
		case <-o.presence.changed:
		case <-look:
		}
	}
}

// end removes all that the exporter has made. Then the lock goes, with this process. Where it could not begin, the directory stays: who has
// started it leaves word there for the other processes of the launch.
func (o *ownMode) end() {
	if o.presence != nil {
		_ = o.presence.close()
	}
	if o.begun {
		o.base.removeAll(o.dir)
	} else {
		o.dir.empty()
	}
}

// withdraw ends being found, before the page does.
func (o *ownMode) withdraw() {
	if o == nil || o.sd == "" {
		return
	}
	_ = os.Remove(o.sd) // it may have gone with its directory
}
