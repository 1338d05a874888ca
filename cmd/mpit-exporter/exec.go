package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// execCommand replaces itself with a program that runs under the agent.
type execCommand struct {
	settings preload.Settings
	own      own.Settings
	program  []string
}

func newExecCommand(app *kingpin.Application, do commands) {
	c := &execCommand{}
	do["exec"] = c.run
	cmd := app.Command("exec", "Run an MPI program under the agent: mpirun -n 4 mpit-exporter exec -- ./program "+
		"arguments. Exits with the program's status; 127: not found, 126: can't be executed, 125: exec itself "+
		"failed.")
	cmd.HelpLong("mpirun -n 4 mpit-exporter exec --calls -- ./program\n" +
		"srun mpit-exporter exec --report=job.html -- ./program")
	cmd.Flag("monitoring", "Open the variables for which each message pays: software performance counters of Open "+
		"MPI 5 and later. Its monitoring component is left off unless you set "+preload.EnvMonitoring+"=2: it ends "+
		"programs that call neighbourhood collectives on graphs, MPI_Comm_spawn or MPI_Win_shared_query. --calls "+
		"counts messages and bytes and harms nothing.").
		BoolVar(&c.settings.Monitoring)
	cmd.Flag("events", "Count the events of MPI_T (MPI-4), by type and object, where the library has any: Open MPI from "+
		"6.0. Each event then costs the program a call-back that adds one.").BoolVar(&c.settings.Events)
	c.settings.AddCalls(cmd, "Count and time every MPI call, by function and communicator: preloads "+
		preload.CallsLibraryName+" as well ($"+preload.EnvCalls+"=1). It costs each call a little, and brings "+
		"several series for each function.")
	cmd.Flag("socket", "Socket of the exporter, if not the default one ($"+sockets.EnvSocket+").").
		PlaceHolder("PATH").StringVar(&c.settings.Socket)
	cmd.Flag("job-id", "Value of the label jobid where no scheduler gives one ($"+preload.EnvJobID+").").
		PlaceHolder("ID").StringVar(&c.settings.JobID)
	cmd.Flag("deny", "Variables that the agent must not open, besides those known to crash: a pattern such as "+
		"osc_*; may be repeated ($"+preload.EnvDeny+").").PlaceHolder("PATTERN").StringsVar(&c.settings.Deny)
	cmd.Flag("allow-write", "Root and you may change control variables of the program while it runs, with "+
		"mpit-exporter cvar set ($"+preload.EnvAllowWrite+"=1). An MPI library may not be prepared for that.").
		BoolVar(&c.settings.AllowWrite)
	cmd.Flag("log", "The agent writes on stderr what it does ($"+preload.EnvLog+"=1).").BoolVar(&c.settings.Log)
	c.own.AddFlags(cmd)
	cmd.Arg("program", "Program and its arguments; write -- in front of them.").StringsVar(&c.program)
}

// run replaces this process: it returns only with an error.
func (c *execCommand) run(ctx context.Context, std cli.Stdio) error {
	env := os.Environ()
	if len(c.program) == 0 {
		return cli.Usagef("exec: no program named; usage: %s exec [flags] -- program arguments", cli.ProgramName)
	}
	if err := c.own.Check(c.settings.Socket); err != nil {
		return err
	}
	if _, err := api.PhaseNames(preload.Environment(env).Get(api.EnvPhases)); err != nil {
		return cli.Usagef("exec: %w", err)
	}
	if c.own.Report != "" {
		c.settings.NeedCalls(env)
	}
	path, err := c.settings.Complete(env, c.program[0])
	if err != nil {
		return err
	}
	if c.own.Enabled {
		if c.settings.JobID != "" {
			(*preload.Environment)(&env).Set(preload.EnvJobID, c.settings.JobID) // the exporter's as well
		}
		c.settings.Socket = c.own.Join(ctx, path, env, std)
		c.settings.FinalWait = c.own.FinalWait()
		if ctx.Err() != nil {
			return cli.Errorf(cli.ExecFailed, "exec: interrupted before the program was started")
		}
	}
	changed, notes := c.settings.Environ(env)
	if preload.Environment(env).FirstRank() {
		// A site that sets the variable for all programs means those as well that run where no exporter is.
		if c.settings.Calls && c.settings.CallsSaid && !c.own.Enabled {
			if place := sockets.Missing(preload.Environment(changed).Get(sockets.EnvSocket)); place != "" {
				notes = append(notes, "no exporter is at "+place+": the program is not observed until one is; start it, or "+
					"add --own")
			}
		}
		for _, note := range notes {
			std.Tell("%s", note)
		}
	}
	return execProgram(path, c.program, changed)
}

// execProgram is execvp(3) with a path that is known: a script without a first line #! goes to the shell.
// The Go runtime puts back what it changed (the limit of open files, the signal mask).
func execProgram(path string, argv, env []string) error {
	err := syscall.Exec(path, argv, env) //nolint:gosec // G204: running the user's program is what this is for
	if errors.Is(err, syscall.ENOEXEC) {
		err = syscall.Exec("/bin/sh", append([]string{"sh", path}, argv[1:]...), env) //nolint:gosec // G204: as above
	}
	if errors.Is(err, fs.ErrNotExist) {
		// The file was there a moment ago: what is missing is its interpreter.
		err = errors.New("its interpreter (#! line or dynamic loader) does not exist")
	}
	return cli.Errorf(cli.NotExecutable, "exec: %s: %w", argv[0], err)
}
