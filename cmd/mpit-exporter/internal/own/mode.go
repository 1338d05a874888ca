package own

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// firstWait is how long an exporter waits for the first process: the one that has started it registers at once,
	// if it lives.
	firstWait = 30 * time.Second
	// lookInterval is how often it looks which processes have ended, and whether all is over.
	lookInterval = 250 * time.Millisecond
	// The report is written for the first time after a second, and then each time after twice as long, until so often.
	firstReport    = time.Second
	reportInterval = 10 * time.Second
	reportTimeout  = 10 * time.Second // of writing it once
)

// Mode is what makes an exporter one launch's own.
type Mode struct {
	order order
	log   *slog.Logger
	dir   *launchDir
	pipe  *os.File

	first, look time.Duration // firstWait, lookInterval, but in tests

	endpoint string       // to which figures are pushed; empty: nowhere
	finals   *finalPush   // what ranks that end wait for
	report   reportWriter // nil: there is none
	noReport error        // why it can't be written, before the program starts
	words    *os.File     // see Settings.words
	mode     os.FileMode  // of the report: what the user's umask allows
	failed   sync.Once    // it has been said at the end

	page     Page
	presence *presence
	begun    bool // it has said that it serves
}

// reportWriter writes the report; ifKilled: only if ranks have just been killed.
type reportWriter func(ctx context.Context, ifKilled bool) error

// Page is where scrapers find it.
type Page struct {
	Listeners []net.Listener // none: there is no page
	TLS       bool
	Path      string
}

// Serve takes over what exec hands on for the launch of a directory, and lets serve be the exporter, which opens a node
// with what its mode says (Arguments, Paged, Options) and ends in Run. What keeps it from beginning is told to exec.
func Serve(path string, serve func(m *Mode) error) error {
	pipe := os.NewFile(pipeFD, "pipe")
	m, err := take(path, pipe)
	if err == nil {
		err = serve(m)
		m.end()
	}
	if err != nil {
		reply(pipe, answer{Error: inFlagsOfExec(err)}) // refused, if there has been an answer
	}
	return err
}

// inFlagsOfExec is the error in terms of exec's flags: the user has given none to serve.
func inFlagsOfExec(err error) string {
	return strings.NewReplacer("--web.listen-address", "--own.listen", "--web.config.file", "--own.web-config").
		Replace(err.Error())
}

func take(path string, pipe *os.File) (*Mode, error) {
	for _, fd := range []int{lockFD, pipeFD, wordsFD} {
		unix.CloseOnExec(fd) // getent is run later
	}
	m := &Mode{pipe: pipe, words: os.NewFile(wordsFD, "words"), first: firstWait, look: lookInterval,
		mode: 0o666 &^ os.FileMode(unix.Umask(0o077))}
	if err := json.Unmarshal([]byte(os.Getenv(envSettings)), &m.order); err != nil {
		return nil, fmt.Errorf("%s %s is for %s exec --own alone: reading its settings: %w",
			cli.ProgramName, Command, cli.ProgramName, err)
	}
	if err := os.Unsetenv(envSettings); err != nil {
		return nil, fmt.Errorf("clearing the settings: %w", err)
	}
	m.finals = newFinalPush(m.order.Wait)
	m.dir = &launchDir{path: path, lockFile: os.NewFile(lockFD, path)}
	return m, errors.Join(checkPrivate(filepath.Dir(path)), checkPrivate(path))
}

// Arguments are those of serve.
func (o *Mode) Arguments() []string { return o.order.Serve }

// Paged says whether there is a page at all.
func (o *Mode) Paged() bool { return o.order.Page }

// Options are what is special about its node. The agent socket's directory is the user's alone, and so is the socket.
func (o *Mode) Options(options *node.Options) {
	options.AgentSocket = []mpit.ListenOption{mpit.WithMode(0o600)}
	if o.order.Wait > 0 {
		options.AgentSocket = append(options.AgentSocket, mpit.WithHeldFinals())
		options.FinalTaken = o.finals.await
	}
}

// Run serves a node until the launch is over. needs are the command's.
func (o *Mode) Run(ctx context.Context, n *node.Node, front *node.Front, needs node.Needs, page Page) error {
	o.log, o.finals.log, o.page = n.Logger, n.Logger, page
	if n.Pusher != nil {
		o.endpoint = n.Pusher.Target()
		o.finals.also(func(ctx context.Context) error {
			_, err := n.Pusher.Push(ctx)
			return err
		})
	}
	err := o.reports(n.Exporter.Values)
	if err != nil {
		return err
	}
	if o.presence, err = listenPresence(o.dir.file(presenceFile)); err != nil { // before the sandbox is raised
		return err
	}
	needs.Dirs = []string{o.dir.path, string(o.dir.base())}
	needs.Programs = []string{o.order.Program}
	if o.order.Report != "" {
		needs.Written = []string{o.order.Report}
	}
	if !o.Paged() {
		front = nil
	}
	return n.Run(o.begin(ctx, n.Exporter.Remaining), needs, front)
}

// reports says how the values for the report are had, before any rank is listened to; nothing is done without one.
func (o *Mode) reports(values func(ctx context.Context, which api.Selector, fresh bool) (api.ValueList, error)) error {
	if o.order.Report == "" {
		return nil
	}
	file, err := report.NewFile(o.order.Report, o.order.Host+"-"+filepath.Base(o.dir.path), o.mode)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	o.noReport = file.Try() // before the sandbox is raised, and while somebody listens
	var one sync.Mutex      // what is written last is newest
	var places client.Callers
	o.report = func(ctx context.Context, ifKilled bool) error {
		one.Lock()
		defer one.Unlock()
		list, err := values(ctx, api.Selector{}, true)
		if err != nil {
			return fmt.Errorf("getting the values for the report: %w", err)
		}
		if killed := o.endKilled(list.Ranks); ifKilled && !killed {
			return nil
		}
		return file.Write(ctx, list, places.OfRank)
	}
	o.finals.also(func(ctx context.Context) error {
		o.writeLast(ctx)
		return nil // what can't be written now can't in a moment: no rank waits for it
	})
	return nil
}

// writeLast writes the report when ranks end, or all has ended. If that fails, it says so where the user may see it.
func (o *Mode) writeLast(ctx context.Context) {
	err := o.report(ctx, false)
	if err == nil || ctx.Err() != nil {
		return
	}
	o.log.Error("The report of the job was not written", "err", err)
	said := make(chan struct{})
	go func() { // nobody may read it, and a terminal be stopped
		defer close(said)
		o.failed.Do(func() { o.say(noReport(err)) })
	}()
	select {
	case <-said:
	case <-ctx.Done():
	}
}

func noReport(err error) string {
	if errors.Is(err, report.ErrNoRanks) {
		return "no report: " + err.Error()
	}
	return fmt.Sprintf("no report: %v; name another file with --report", err)
}

// say writes a line to the stderr of the process that has started the exporter.
func (o *Mode) say(line string) {
	text := cli.ProgramName + ": " + line + "\n"
	if _, err := o.words.WriteString(text); err == nil {
		return
	}
	// A pipe, which is only named: it is there as long as it is read.
	path := fmt.Sprintf("/proc/self/fd/%d", o.words.Fd())
	if pipe, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		_, _ = pipe.WriteString(text)
		_ = pipe.Close()
	}
}

// endKilled ends ranks that have no connection any more and whose process has left. The exporter gives their last
// sample two seconds to come; mpirun has ended by then, and the user has read the report.
func (o *Mode) endKilled(ranks []api.RankValues) (killed bool) {
	for i := range ranks {
		if r := &ranks[i].Rank; !r.Peer.Lost.IsZero() && o.presence.hasLeft(r.Peer.PID) {
			r.State, r.EndReason, r.Ended = "ended", mpit.EndLost.String(), &r.Peer.Lost
			killed = true
		}
	}
	return killed
}

// begin says that the exporter serves. The context that it returns ends when the launch is over and its last values
// have been taken, or their time is. remaining is how many ranks live, and how many have ended whose values nobody
// has taken.
func (o *Mode) begin(ctx context.Context, remaining func() (living, untaken int)) context.Context {
	var answer answer
	scheme := map[bool]string{false: "http", true: "https"}[o.page.TLS]
	for _, address := range addresses(o.page.Listeners, o.order.Host) {
		answer.Lines = append(answer.Lines, fmt.Sprintf(
			"metrics of this job at %[1]s://%[2]s%[3]s (live page: %[1]s://%[2]s/)", scheme, address, o.page.Path))
	}
	if o.endpoint != "" {
		answer.Lines = append(answer.Lines, "metrics of this job are pushed to "+o.endpoint)
	}
	switch {
	case o.noReport != nil:
		answer.Lines = append(answer.Lines, noReport(o.noReport)+"; the program runs on")
	case o.order.Report != "":
		answer.Lines = append(answer.Lines, "the report of this job will be "+o.order.Report)
	}
	reply(o.pipe, answer)
	o.begun = true
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		o.awaitEnd(ctx, remaining)
		if o.report != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
			defer cancel()
			o.writeLast(ctx)
		}
	}()
	return ctx
}

// writeReport writes the report while ranks run; ifKilled: only if some have just been killed.
func (o *Mode) writeReport(ctx context.Context, ifKilled bool) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	if err := o.report(ctx, ifKilled); err != nil && ctx.Err() == nil && !errors.Is(err, report.ErrNoRanks) {
		o.log.Error("The report of the job was not written", "err", err)
	}
}

// awaitEnd returns when all processes have ended and the last values have been taken, or their time is over. Until
// then it writes the report again and again, so that something is known of ranks that are killed and it can be read
// while the job runs, and when ranks have been killed.
func (o *Mode) awaitEnd(ctx context.Context, remaining func() (living, untaken int)) {
	began := time.Now()
	wait, written := firstReport, began
	var over time.Time // since when the last values wait to be taken; zero: they don't
	seen := false      // there has been a process
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(o.look):
		}
		present, came, gone := o.presence.look()
		if due := time.Since(written) >= wait; o.report != nil && (due || gone) {
			o.writeReport(ctx, !due)
			if due {
				wait, written = min(2*wait, reportInterval), time.Now()
			}
		}
		if present > 0 {
			continue
		}
		living, untaken := remaining()
		if o.report != nil && !o.order.Page && o.endpoint == "" {
			untaken = 0 // the report is all that is wanted
		}
		seen = seen || came || living > 0 || untaken > 0
		switch {
		case living > 0:
			over = time.Time{}
		case untaken > 0 && over.IsZero():
			over = time.Now()
			o.log.Debug("The launch has ended", "ranks_to_be_scraped", untaken)
		}
		ended := living == 0 && (seen || time.Since(began) >= o.first)
		if ended && (untaken == 0 || time.Since(over) >= o.order.Linger) && o.presence.retire() {
			if untaken > 0 {
				o.log.Warn("The last values were not scraped", "ranks", untaken, "linger", o.order.Linger)
			}
			return
		}
	}
}

// end removes all that the exporter has made; the lock goes with this process. If it could not begin, the directory
// stays: the process that has started it leaves word there for the others of the launch.
func (o *Mode) end() {
	if o.presence != nil {
		o.presence.close()
	}
	if o.begun {
		o.dir.remove()
		_ = os.Remove(string(o.dir.base())) // fails where other launches are in it
	} else {
		o.dir.empty()
	}
}

// addresses are what a scraper in the cluster can connect to: this host's name in the place of "all interfaces".
func addresses(listeners []net.Listener, host string) []string {
	var all []string
	for _, l := range listeners {
		tcp, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		name := tcp.IP.String()
		if tcp.IP.IsUnspecified() {
			name = host
		}
		all = append(all, net.JoinHostPort(name, strconv.Itoa(tcp.Port)))
	}
	return all
}
