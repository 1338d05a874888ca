package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// Parse parses the arguments and returns the name of the subcommand that they select. Its errors end the program with
// the status Usage, and say whose help to read.
func Parse(app *kingpin.Application, args []string) (command string, err error) {
	command, err = app.Parse(args)
	if misplaced := valueOfSwitch(app, args); misplaced != nil {
		err = misplaced
	}
	if err != nil {
		return "", Usagef("%w (see %s --help)", naming(app, args, err), helpOf(app, args))
	}
	return command, nil
}

// helpOf returns the command whose help shows what could have stood in args.
func helpOf(app *kingpin.Application, args []string) string {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") && app.GetCommand(args[0]) == nil {
		return ProgramName // not the default command's: its help names no other command
	}
	if parsed, _ := app.ParseContext(args); parsed != nil && parsed.SelectedCommand != nil {
		return ProgramName + " " + parsed.SelectedCommand.FullCommand()
	}
	return ProgramName
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

// valueOfSwitch is an error if args give a value to a flag that takes none: the parser would take the value for the
// next argument, and exec --calls=1 run a program 1. What belongs to a program that is started is not looked at.
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
