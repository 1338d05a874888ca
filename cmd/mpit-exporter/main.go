// Command mpit-exporter serves the MPI_T performance variables of the MPI processes on its node to Prometheus.
//
// Its commands: serve (the default) is the exporter, push one that pushes to a receiver of OpenTelemetry's protocol and serves no HTTP,
// exec starts a program under the agent, list shows what variables there are, top what moves in them, cvar sets those that control the
// library, config is about the rules that say what variables become.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

const programName = "mpit-exporter"

// Exit statuses. Those of exec are its own, as env(1) and timeout(1) have them, so that a script can tell them from the program's.
const (
	exitFailure       = 1
	exitUsage         = 2
	exitPartial       = 3   // cvar set: a rank failed after it or others were changed, be it put back or not; push: not all was delivered
	exitExecFailed    = 125 // exec itself failed: no agent library
	exitNotExecutable = 126
	exitNotFound      = 127
)

// exitError is an error with an exit status other than exitFailure.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// stdio is what a command reads and writes, so that tests can look on.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	// A file name that begins with @ is nothing special: exec hands arguments on as they are.
	kingpin.EnableFileExpansion = false
	signals := []os.Signal{syscall.SIGTERM}
	// In a script's background it is ignored, and stays so: for the program that exec starts, too.
	if !signal.Ignored(syscall.SIGINT) {
		signals = append(signals, syscall.SIGINT)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// After the first signal the second one ends the program at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	os.Exit(report(os.Stderr, err))
}

// report writes one line about err, or one for each mistake in rule files, and returns the exit status that goes with it.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if bad := (*badRules)(nil); errors.As(err, &bad) {
		for _, line := range bad.lines() {
			fmt.Fprintln(w, line)
		}
		return exitFailure
	}
	// Errors of libraries may span lines.
	fmt.Fprintf(w, "%s: %s\n", programName, strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; "))
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.status
	}
	return exitFailure
}

// helpOf returns the command whose help shows what could have stood in args.
func helpOf(app *kingpin.Application, args []string) string {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") && app.GetCommand(args[0]) == nil {
		return programName // not the default command's: its help names no other command
	}
	if parsed, _ := app.ParseContext(args); parsed != nil && parsed.SelectedCommand != nil {
		return programName + " " + parsed.SelectedCommand.FullCommand()
	}
	return programName
}

// naming puts the flag in front of what the parser says of its value alone.
func naming(app *kingpin.Application, args []string, err error) error {
	parsed, parseErr := app.ParseContext(args)
	if parseErr != nil {
		return err
	}
	for _, element := range parsed.Elements {
		flag, ok := element.Clause.(*kingpin.FlagClause)
		if !ok || element.Value == nil {
			continue
		}
		if again := flag.Model().Value.Set(*element.Value); again != nil && again.Error() == err.Error() {
			return fmt.Errorf("--%s: %w", flag.Model().Name, err)
		}
	}
	return err
}

// valueOfSwitch is an error if args give a value to a flag that takes none: the parser would take the value for the next argument, and
// exec --calls=1 run a program 1. What belongs to a program that is started is not looked at.
func valueOfSwitch(app *kingpin.Application, args []string) error {
	parsed, _ := app.ParseContext(args)
	if parsed == nil || parsed.SelectedCommand == nil {
		return nil
	}
	flags := map[string]*kingpin.FlagModel{}
	for _, flag := range append(app.Model().Flags, parsed.SelectedCommand.Model().Flags...) {
		flags[flag.Name] = flag
	}
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		given, long := strings.CutPrefix(args[i], "--")
		if !long {
			if i < len(strings.Fields(parsed.SelectedCommand.FullCommand())) {
				continue // the command's name
			}
			return nil // a program or another argument, or a short flag
		}
		name, _, valued := strings.Cut(given, "=")
		flag := flags[name]
		if flag == nil {
			flag = flags[strings.TrimPrefix(name, "no-")]
		}
		switch {
		case flag == nil:
		case flag.IsBoolFlag() && valued:
			return fmt.Errorf("--%s takes no value: write --%s or --no-%s", name, flag.Name, flag.Name)
		case !flag.IsBoolFlag() && !valued:
			i++ // its value
		}
	}
	return nil
}

// run does what the arguments say. It returns when the command has ended; after a successful exec it never does.
func run(ctx context.Context, args []string, std stdio) error {
	if len(args) == 3 && args[0] == ownCommand { // exec's own, and nobody else's
		switch args[1] {
		case ownDetach:
			return detachOwn(args[2])
		case ownServe:
			return serveOwn(ctx, args[2], std)
		}
	}
	app := kingpin.New(programName, "Serves the MPI_T performance variables of the MPI processes on this node to Prometheus.")
	app.UsageWriter(std.out)
	app.ErrorWriter(std.err)
	app.Version(version.Print(strings.ReplaceAll(programName, "-", "_")))
	app.HelpFlag.Short('h')
	// What follows a program's name belongs to the program; nothing of config runs one.
	app.Interspersed(len(args) > 0 && args[0] == "config")

	serve := newServeCommand(app)
	push := newPushCommand(app)
	exec := newExecCommand(app)
	list := newListCommand(app)
	top := newTopCommand(app)
	cvar := newCvarCommand(app)
	config := newConfigCommand(app)

	command, err := app.Parse(args)
	if said := valueOfSwitch(app, args); said != nil {
		err = said
	}
	if err != nil {
		return usageErrorf("%w (see %s --help)", naming(app, args, err), helpOf(app, args))
	}
	switch command {
	case push.name:
		return push.run(ctx, std)
	case exec.name:
		return exec.run(ctx, os.Environ(), std)
	case list.name:
		return list.run(ctx, std)
	case top.name:
		return top.run(ctx, std)
	case cvar.setName, cvar.getName:
		return cvar.run(ctx, command, std)
	case config.checkName, config.showName, config.explainName:
		return config.run(command, std)
	default:
		return serve.run(ctx, std)
	}
}
