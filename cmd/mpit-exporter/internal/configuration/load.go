// Package configuration reads rule files for the command, as an exporter wants them.
//
// What rules mean is mapping's, and so are their mistakes; here is which files there are and how they are put
// together.
package configuration

import (
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// FileHelp is the help of the flag --config.file, which several commands have.
const FileHelp = "File with rules that say what variables become, or directory with such files (*.yaml, *.yml); " +
	"repeatable. The first rule that matches and sets a property wins; the shipped rules come last."

// CheckPaths refuses an empty path, which a script's unset variable leaves.
func CheckPaths(what string, paths []string) error {
	if slices.Contains(paths, "") {
		return cli.Usagef("%s: the name of a file is empty", what)
	}
	return nil
}

// Load reads and compiles rule files. Beside the rules for an exporter it returns what the files say, which these are
// made from. If one of them is bad, the error is rules.Problems with everything that is wrong in any of them.
func Load(paths []string, timerInterval time.Duration) (exporter.Rules, *rules.Settings, error) {
	settings, err := rules.Load(paths)
	if err != nil {
		return exporter.Rules{}, nil, err
	}
	mapper, err := variables.New(variables.Config{Rules: settings.Rules, Rank: settings.Rank,
		TimerInterval: timerInterval})
	if err != nil {
		return exporter.Rules{}, nil, err
	}
	return exporter.Rules{Mapper: mapper, Limits: settings.Limits, Identity: settings.Identity}, settings, nil
}
