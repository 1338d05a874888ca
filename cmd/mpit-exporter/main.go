// Command mpit-exporter serves the MPI_T performance variables of the MPI processes on its node to Prometheus.
//
// Each subcommand is a file here, with its flags and what it does in their order; what it is made of are the packages
// under internal/. Begin with run, then with the file of a subcommand:
//
//   - serve (the default) is the exporter; push is one that pushes to a receiver of OpenTelemetry's protocol and
//     serves no HTTP;
//   - exec starts a program under the agent, and, with --own, an exporter of its launch (own);
//   - list shows what variables there are, top what moves in them, report how a job does, page all of it in a browser,
//     cvar reads and sets those that control the library;
//   - config is about the rules that say what variables become.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own"
)

func main() {
	// Builds without make, such as go install's, are named by their module.
	if built, ok := debug.ReadBuildInfo(); ok && version.Version == "" {
		version.Version = strings.TrimPrefix(built.Main.Version, "v")
	}
	// A file name that begins with @ is nothing special: exec hands arguments on as they are.
	kingpin.EnableFileExpansion = false
	signals := []os.Signal{syscall.SIGTERM}
	// In a script's background SIGINT is ignored, and stays so, also for the program that exec starts.
	if !signal.Ignored(syscall.SIGINT) {
		signals = append(signals, syscall.SIGINT)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], cli.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	os.Exit(cli.Report(os.Stderr, err))
}

// run does what the arguments say. It returns when the command has ended; after a successful exec it never does.
func run(ctx context.Context, args []string, std cli.Stdio) error {
	if len(args) == 3 && args[0] == own.Command { // exec's own, and nobody else's
		switch args[1] {
		case own.DetachStep:
			return own.Detach(args[2]) //nolint:gosec // G602: there are three
		case own.ServeStep:
			return runOwn(ctx, args[2], std) //nolint:gosec // G602: the same
		}
	}
	app := kingpin.New(cli.ProgramName, "Serves the MPI_T performance variables of the MPI processes on this node "+
		"to Prometheus.")
	app.UsageWriter(std.Out)
	app.ErrorWriter(std.Err)
	app.Version(version.Print(cli.ProgramName))
	app.HelpFlag.Short('h')
	cli.Help(app)
	// What follows a program's name belongs to the program. No command of config runs a program.
	app.Interspersed(len(args) > 0 && args[0] == "config")

	do := commands{}
	newServeCommand(app, do)
	newPushCommand(app, do)
	newExecCommand(app, do)
	newListCommand(app, do)
	newTopCommand(app, do)
	newCvarCommand(app, do)
	newReportCommand(app, do)
	newJudgeCommand(app, do)
	newPageCommand(app, do)
	newConfigCommand(app, do)
	command, err := cli.Parse(app, args)
	if err != nil {
		return err
	}
	return do[command](ctx, std)
}

// commands are what subcommands do, by their names.
type commands map[string]func(ctx context.Context, std cli.Stdio) error
