// Package own is exec --own: the processes of one launch on a node share an exporter, which the first of them starts
// and which ends with the last (docs/deploy.md).
//
// It has two sides, which are two processes. Settings.Join, in exec, finds out which launch this is (launch.go), takes
// or finds the lock of its directory (place.go), starts the exporter (start.go) and registers with it (presence.go).
// Mode, in the exporter, is what makes serve one launch's own: it says where its page is, and when it is over.
package own

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

const (
	// startTimeout is how long a program waits at most until its exporter listens.
	startTimeout = 10 * time.Second
	firstLook    = 2 * time.Millisecond // until who has lost the election looks again; doubled each time
	lastLook     = 50 * time.Millisecond
	maxWait      = time.Minute // the agent's own bound
)

// Settings are the flags of exec that let the first process of a launch on each node start an exporter in the user's
// own account.
type Settings struct {
	Enabled bool
	order   // what the exporter is told of it; Wait and Report as they were given

	listen      string
	named       bool // the address was
	parent, log string
	// reportAlone says that there is an exporter for the report's sake: --own was not given.
	reportAlone bool
	otlp        *node.OTLPFlags
	forwarded   []string // flags for serve, as they were given
	meant       []string // flags that make sense with --own alone

	patience time.Duration // startTimeout, but in tests
}

// noPage is the value of --own.listen that stands for no port.
const noPage = "none"

// AddFlags adds --own, all that begins with --own., and those of OTLP.
func (o *Settings) AddFlags(cmd *kingpin.CmdClause) {
	o.patience = startTimeout
	cmd.Flag("own", "Where no exporter runs on the nodes: the first process of this launch on each node starts one "+
		"in your account, which ends with the last (docs/deploy.md).").BoolVar(&o.Enabled)
	cmd.Flag("own.listen", "Address of its page. Port 0: a free one, which is printed. none: no port, as without "+
		"this flag where OTLP is asked for.").
		Default(":0").IsSetByUser(&o.named).PlaceHolder("ADDRESS").StringVar(&o.listen)
	cmd.Flag("own.web-config", "File with TLS and passwords for its page, as --web.config.file of serve.").
		PlaceHolder("FILE").String()
	cmd.Flag("own.linger", "How long its page stays at most after the last process has ended, for the last values "+
		"to be scraped.").Default("1m").DurationVar(&o.Linger)
	cmd.Flag("own.wait", "How long MPI_Finalize waits at most until the last values have been pushed: batch systems "+
		"kill what is left once the last rank has ended.").Default("2s").DurationVar(&o.Wait)
	cmd.Flag("own.config", "Rule file or directory of such, as --config.file of serve. Repeatable.").
		PlaceHolder("PATH").Strings()
	cmd.Flag("own.log", "File that its log is added to. Otherwise it goes with the exporter.").PlaceHolder("FILE").
		StringVar(&o.log)
	cmd.Flag("own.dir", "Local directory for its sockets; in it "+cli.ProgramName+"-<uid> is made. Otherwise "+
		"$XDG_RUNTIME_DIR, /tmp, or the home directory.").PlaceHolder("DIR").StringVar(&o.parent)
	cmd.Flag("report", "Write a page about the job to this file when it ends: .html, .json or .txt. Brings --own and "+
		"--calls; on several nodes the file must be in a directory that they share.").PlaceHolder("FILE").
		StringVar(&o.Report)
	o.otlp = node.AddOTLPFlags(cmd, false)
	cmd.PreAction(o.forward)
}

// filesOf are flags with names of files that serve has under another name.
var filesOf = map[string]string{"own.web-config": "web.config.file", "own.config": "config.file"}

// forward notes the flags of OTLP, and those with files, for the exporter, and all flags that make sense with --own
// alone.
func (o *Settings) forward(parsed *kingpin.ParseContext) (err error) {
	for _, element := range parsed.Elements {
		flag, ok := element.Clause.(*kingpin.FlagClause)
		if !ok || element.Value == nil {
			continue
		}
		name, value, isSwitch := flag.Model().Name, *element.Value, flag.Model().IsBoolFlag()
		isOTLP := name == "otlp" || strings.HasPrefix(name, "otlp.")
		off := isSwitch && value == "false" // --no-otlp is as it is without --own
		if (isOTLP || strings.HasPrefix(name, "own.")) && !off {
			o.meant = append(o.meant, "--"+name)
		}
		switch {
		case filesOf[name] != "":
			if value != "" {
				value, err = filepath.Abs(value)
			}
			o.forwarded = append(o.forwarded, "--"+filesOf[name]+"="+value)
		case !isOTLP:
		case off:
			o.forwarded = append(o.forwarded, "--no-"+name)
		case isSwitch:
			o.forwarded = append(o.forwarded, "--"+name)
		default:
			o.forwarded = append(o.forwarded, "--"+name+"="+value)
		}
	}
	return err
}

// paged says whether the exporter has a page: not where its figures are pushed or reported, unless one is asked for.
func (o *Settings) paged() bool {
	if o.named {
		return o.listen != noPage
	}
	return !o.otlp.Asked() && !o.reportAlone
}

// Check finds what the flag parser can't, before any process depends on it.
func (o *Settings) Check(socket string) error {
	if o.Report != "" {
		o.reportAlone = !o.Enabled
		o.Enabled = true
		if _, err := report.NewFile(o.Report, "", 0); err != nil {
			return cli.Usagef("--report %v", err)
		}
	}
	switch {
	case !o.Enabled && len(o.meant) > 0:
		return cli.Usagef("exec: %s is for an exporter that exec starts: add --own, or give it to the exporter of "+
			"the node", o.meant[0])
	case !o.Enabled:
		return nil
	case socket != "":
		return cli.Usagef("exec: --socket names an exporter that runs already, --own starts one: leave one of them " +
			"out")
	case o.Wait < 0 || o.Wait > maxWait:
		return cli.Usagef("--own.wait %v: must be from 0 to %v", o.Wait, maxWait)
	case !o.paged() && !o.otlp.Asked() && o.Report == "":
		return cli.Usagef("--own.listen none: then the figures must be pushed or reported: add --otlp, " +
			"--otlp.endpoint or --report")
	case o.Linger < 0:
		return cli.Usagef("--own.linger %v: must not be negative", o.Linger)
	case o.listen == "":
		return cli.Usagef("--own.listen: an address such as :0 is needed, or none")
	}
	return o.otlp.Check()
}

// absolute makes all paths absolute, because the exporter's directory is /.
func (o *Settings) absolute() (err error) {
	for _, path := range []*string{&o.parent, &o.log, &o.Report, &o.Program} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	return err
}

// Join finds or starts the exporter of this launch on this node and returns the path of its socket, for MPIT_SOCKET.
// It returns within the patience, always; without an exporter the program runs on unobserved, and one process of the
// node says so.
func (o *Settings) Join(ctx context.Context, program string, env preload.Environment, std cli.Stdio) (socket string) {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	o.Program = program
	err := o.absolute()
	if err == nil {
		socket, err = o.joinLaunch(ctx, env, std)
	}
	if err != nil && !errors.Is(err, errTold) && env.FirstOnNode() {
		tellUnobserved(std, err)
	}
	// Not the usual place where there is none: agents shouldn't connect to whatever listens there.
	return cmp.Or(socket, os.DevNull)
}

// errTold stands for a failure that another process of the node has reported.
var errTold = errors.New("reported already")

func tellUnobserved(std cli.Stdio, err error) {
	std.Tell("--own: %v; the program runs on unobserved", err)
}

// joinLaunch is Join of the launch that this process belongs to. The socket is known before an exporter listens
// there.
func (o *Settings) joinLaunch(ctx context.Context, env preload.Environment, std cli.Stdio) (socket string, err error) {
	if o.Host, err = os.Hostname(); err != nil {
		return "", fmt.Errorf("finding this node's name: %w", err)
	}
	key := launchOf(env, o.Host, os.Getpid(), "/proc")
	began := time.Now()
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		dir, err := o.elect(ctx, key, began, env, std)
		if dir == "" {
			return "", err
		}
		socket = filepath.Join(dir, sockets.AgentFile)
		if err != nil {
			return socket, err
		}
		if register(ctx, filepath.Join(dir, presenceFile)) {
			return socket, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			// Its socket is where the agents will look: they are observed from when it does listen.
			return socket, fmt.Errorf("its exporter does not listen after %v", o.patience)
		}
	}
}

// elect starts the exporter of a launch, unless another process does or has done so. It returns the launch's
// directory, "" where there can't be one.
func (o *Settings) elect(
	ctx context.Context, key string, began time.Time, env preload.Environment, std cli.Stdio,
) (path string, err error) {
	places := []string{o.parent}
	if o.parent == "" {
		places = placesForBase(os.Getenv)
	}
	base, err := makeBase(places...)
	if err != nil {
		return "", err
	}
	dir, err := base.lock(key)
	if err != nil {
		return "", err
	}
	path = filepath.Join(string(base), key)
	if dir == nil { // another one's turn
		return path, nil
	}
	defer dir.close()
	if dir.failed(began) {
		return path, errTold
	}
	base.clean(began, key)
	lines, err := o.start(ctx, dir, env)
	if err != nil {
		dir.fail()
		tellUnobserved(std, err)
		return path, errTold
	}
	for _, line := range lines {
		std.Tell("%s", line)
	}
	return path, nil
}

// FinalWait is how long ranks should wait in MPI_Finalize for their last values to be pushed, or reported; 0: neither
// is asked for.
func (o *Settings) FinalWait() time.Duration {
	if !o.otlp.Asked() && o.Report == "" {
		return 0
	}
	return o.Wait
}
