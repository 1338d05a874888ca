package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// Parse parses the arguments and returns the name of the subcommand that they select. Its errors end the program with
// the status Usage, and say whose help to read.
func Parse(app *kingpin.Application, args []string) (command string, err error) {
	if len(args) > 1 && args[0] == "help" && !strings.HasPrefix(args[1], "-") && app.GetCommand(args[1]) == nil {
		args = args[1:] // the parser would end the program, with no word on what there is
	}
	left, wrong := takeValues(app, args)
	command, err = app.Parse(left)
	if err = cmp.Or(wrong, err); err != nil {
		return "", Usagef("%w%s (see %s --help)", naming(app, left, err), meant(app, left, err), helpOf(app, left))
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

// meant asks whether another name was meant, if the parser complains of one that is nearly one.
func meant(app *kingpin.Application, args []string, err error) string {
	var names []string
	dashes, wrong := "", ""
	switch text := err.Error(); {
	case strings.HasPrefix(text, "unknown long flag '--"):
		dashes, wrong = "--", strings.Trim(strings.TrimPrefix(text, "unknown long flag '--"), "'")
		flags := app.Model().Flags
		if parsed, _ := app.ParseContext(args); parsed != nil && parsed.SelectedCommand != nil {
			flags = append(flags, parsed.SelectedCommand.Model().Flags...)
		}
		for _, flag := range flags {
			names = append(names, flag.Name)
		}
	case len(args) > 0 && (text == "unexpected "+args[0] || strings.Contains(text, "expected command but got")):
		wrong = args[len(args)-1]
		if text == "unexpected "+args[0] {
			wrong = args[0]
		}
		for _, command := range app.Model().FlattenedCommands() {
			names = append(names, command.Name)
		}
	}
	wrong, _, _ = strings.Cut(wrong, "=")
	best, least := "", 1+len(wrong)/3
	for _, name := range names {
		if d := distance(wrong, name); d <= least && (best == "" || d < distance(wrong, best)) {
			best = name
		}
	}
	if best == "" || wrong == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", dashes, best)
}

// distance is how many letters are missing, too many or wrong.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
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
			if strings.Contains(err.Error(), "missing unit in duration") {
				err = fmt.Errorf("%w: write %ss for seconds", err, *element.Value)
			}
			return fmt.Errorf("--%s: %w", flag.Model().Name, err)
		}
	}
	return err
}

// takeValues hands the values of switches over, and returns args without them, as kingpin would take them for
// arguments: exec --calls=1 would run a program 1. A value for a switch that takes none is an error. What belongs to a
// program that is started is not looked at. A switch that may be given words, as in --calls, --no-calls and
// --calls=sizes, has a value with SetWords, which is called before Set("true").
func takeValues(app *kingpin.Application, args []string) (left []string, err error) {
	left = slices.Clone(args)
	parsed, _ := app.ParseContext(args)
	if parsed == nil || parsed.SelectedCommand == nil {
		return left, nil
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
			return left, nil // a program or another argument, or a short flag
		}
		name, words, valued := strings.Cut(given, "=")
		flag := flags[name]
		if flag == nil {
			flag = flags[strings.TrimPrefix(name, "no-")]
		}
		switch {
		case flag == nil:
		case flag.IsBoolFlag() && valued:
			value, wordy := flag.Value.(interface{ SetWords(words string) error })
			if !wordy || name != flag.Name {
				return left, fmt.Errorf("--%s takes no value: write --%s or --no-%s", name, flag.Name, flag.Name)
			}
			if err := value.SetWords(words); err != nil {
				return left, fmt.Errorf("--%s=%s: %w", name, words, err)
			}
			left[i] = "--" + name
		case !flag.IsBoolFlag() && !valued:
			i++ // its value
		}
	}
	return left, nil
}
