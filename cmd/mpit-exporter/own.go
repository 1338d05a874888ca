package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

const (
	// ownStartTimeout is how long a program waits at most until its exporter listens.
	ownStartTimeout = 10 * time.Second
	ownFirstLook    = 2 * time.Millisecond // until who has lost the election looks again; doubled each time
	ownLastLook     = 50 * time.Millisecond
	defaultOwnDir   = "/tmp"
	maxOwnWait      = time.Minute // the agent's own bound
)

// ownSettings are the flags of exec that let the first process of a launch on each node start an exporter in the user's own account.
type ownSettings struct {
	enabled   bool
	listen    string
	named     bool // the address was
	webConfig string
	sdDir     string
	parent    string
	linger    time.Duration
	config    []string
	log       string
	wait      time.Duration
	otlp      *otlpFlags
	forwarded []string // flags of OTLP, as they were given
	meant     []string // flags that make sense with --own alone

	patience time.Duration // ownStartTimeout, but in tests
}

// ownPageNone is the value of --own.listen that stands for no port.
const ownPageNone = "none"

func (o *ownSettings) addFlags(cmd *kingpin.CmdClause) {
	o.patience = ownStartTimeout
	cmd.Flag("own", "Where no exporter runs on the nodes: the first process of this launch on each node starts one in your account, which ends with "+
		"the last (docs/own.md).").BoolVar(&o.enabled)
	cmd.Flag("own.listen", "Address of its page. Port 0: a free one, which is printed. none: no port, as without this flag where OTLP is "+
		"asked for.").Default(":0").IsSetByUser(&o.named).PlaceHolder("ADDRESS").StringVar(&o.listen)
	cmd.Flag("own.web-config", "File with TLS and passwords for its page, as --web.config.file of serve.").PlaceHolder("FILE").StringVar(&o.webConfig)
	cmd.Flag("own.sd-dir", "Directory, shared with Prometheus, in which each node's exporter keeps a file for file_sd_configs while it runs.").
		PlaceHolder("DIR").StringVar(&o.sdDir)
	cmd.Flag("own.linger", "How long its page stays at most after the last process has ended, for the last values to be scraped.").Default("1m").DurationVar(&o.linger)
	cmd.Flag("own.wait", "How long MPI_Finalize waits at most until the last values have been pushed: batch systems kill what is left once the last rank has "+
		"ended.").Default("2s").DurationVar(&o.wait)
	cmd.Flag("own.config", "Rule file or directory of such, as --config.file of serve. Repeatable.").PlaceHolder("PATH").StringsVar(&o.config)
	cmd.Flag("own.log", "File that its log is added to. Otherwise it goes with the exporter.").PlaceHolder("FILE").StringVar(&o.log)
	cmd.Flag("own.dir", "Local directory for its sockets; in it "+programName+"-<uid> is made.").Default(defaultOwnDir).PlaceHolder("DIR").StringVar(&o.parent)
	o.otlp = addOTLPFlags(cmd, false)
	cmd.PreAction(func(parsed *kingpin.ParseContext) error {
		o.forward(parsed)
		return nil
	})
}

// forward notes the flags of OTLP, for the exporter, and what was said of an exporter at all.
func (o *ownSettings) forward(parsed *kingpin.ParseContext) {
	for _, element := range parsed.Elements {
		flag, ok := element.Clause.(*kingpin.FlagClause)
		if !ok || element.Value == nil {
			continue
		}
		name := flag.Model().Name
		if strings.HasPrefix(name, "own.") || name == "otlp" || strings.HasPrefix(name, "otlp.") {
			if !flag.Model().IsBoolFlag() || *element.Value != "false" { // --no-otlp is as it is without --own
				o.meant = append(o.meant, "--"+name)
			}
		}
		switch {
		case name != "otlp" && !strings.HasPrefix(name, "otlp."):
		case flag.Model().IsBoolFlag() && *element.Value == "false":
			o.forwarded = append(o.forwarded, "--no-"+name)
		case flag.Model().IsBoolFlag():
			o.forwarded = append(o.forwarded, "--"+name)
		case slices.Contains(otlpFiles, name):
			path := *element.Value
			if absolute, err := filepath.Abs(path); err == nil {
				path = absolute
			}
			o.forwarded = append(o.forwarded, "--"+name+"="+path)
		default:
			o.forwarded = append(o.forwarded, "--"+name+"="+*element.Value)
		}
	}
}

// otlpFiles are the flags of OTLP that name files.
var otlpFiles = []string{"otlp.header-file", "otlp.certificate", "otlp.client-certificate", "otlp.client-key"}

// paged says whether the exporter has a page: not where its figures are pushed, unless one is asked for.
func (o *ownSettings) paged() bool {
	if o.named {
		return o.listen != ownPageNone
	}
	return !o.otlp.asked()
}

// check finds what the flag parser can't, before any process depends on it.
func (o *ownSettings) check(socket string) error {
	switch {
	case !o.enabled && len(o.meant) > 0:
		return usageErrorf("exec: %s is for an exporter that exec starts: add --own, or give it to the exporter of the node", o.meant[0])
	case !o.enabled:
		return nil
	case socket != "":
		return usageErrorf("exec: --socket names an exporter that runs already, --own starts one: leave one of them out")
	case o.wait < 0 || o.wait > maxOwnWait:
		return usageErrorf("--own.wait %v: must be from 0 to %v", o.wait, maxOwnWait)
	case !o.paged() && !o.otlp.asked():
		return usageErrorf("--own.listen none: then the figures must be pushed: add --otlp or --otlp.endpoint")
	case o.linger < 0:
		return usageErrorf("--own.linger %v: must not be negative", o.linger)
	case o.listen == "":
		return usageErrorf("--own.listen: an address such as :0 is needed, or none")
	}
	return o.otlp.check()
}

// absolute makes paths those that a change of directory doesn't change: the exporter's is /.
func (o *ownSettings) absolute() error {
	paths := []*string{&o.webConfig, &o.sdDir, &o.parent, &o.log}
	for i := range o.config {
		paths = append(paths, &o.config[i])
	}
	for _, path := range paths {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("making %s an absolute path: %w", *path, err)
		}
		*path = absolute
	}
	return nil
}

// join finds or starts the exporter of this launch on this node and returns the path of its socket, for MPIT_SOCKET. It returns within
// the patience, always; without an exporter the program runs on unobserved, and one process of the node says so.
func (o *ownSettings) join(ctx context.Context, env environment, std stdio) (socket string) {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	err := o.absolute()
	if err == nil {
		socket, err = o.joinLaunch(ctx, env, std.err)
	}
	switch {
	case err == nil, errors.Is(err, errTold):
	default:
		if env.firstOnNode() {
			tellUnobserved(std.err, err)
		}
	}
	if socket == "" {
		// Not the place where agents look otherwise: whatever listens there was not asked for.
		socket = os.DevNull
	}
	return socket
}

// errTold stands for a failure that another process of the node has reported.
var errTold = errors.New("reported already")

func tellUnobserved(w io.Writer, err error) {
	fmt.Fprintf(w, "%s: --own: %v; the program runs on unobserved\n", programName, err)
}

func (o *ownSettings) joinLaunch(ctx context.Context, env environment, stderr io.Writer) (socket string, err error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding this node's name: %w", err)
	}
	l := launchOf(env, host, os.Getpid(), os.DirFS("/proc"))
	began := time.Now()
	for wait := ownFirstLook; ; wait = min(2*wait, ownLastLook) {
		base, err := openBase(o.parent)
		if err != nil {
			return "", err
		}
		path := filepath.Join(base.path, l.key)
		socket = filepath.Join(path, socketFile)
		dir, err := base.lock(l.key)
		switch {
		case err != nil:
			base.close()
			return "", err
		case dir != nil && dir.failed(began):
			dir.close()
			base.close()
			return socket, errTold
		case dir != nil:
			base.clean(began, l.key)
			base.close()
			place, err := o.start(ctx, dir, l, env)
			if err != nil {
				dir.fail()
				dir.close()
				tellUnobserved(stderr, err)
				return socket, errTold
			}
			dir.close()
			for _, line := range place {
				fmt.Fprintf(stderr, "%s: %s\n", programName, line)
			}
		default:
			base.close()
		}
		if register(ctx, filepath.Join(path, ownSocketFile)) == nil {
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
