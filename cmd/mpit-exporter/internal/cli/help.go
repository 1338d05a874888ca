package cli

import (
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

// Help makes an application's help begin with what HelpLong has, which are examples, and show flags in groups.
func Help(app *kingpin.Application) {
	app.UsageFuncs(template.FuncMap{"Grouped": grouped, "Examples": examples})
	text := strings.Replace(kingpin.DefaultUsageTemplate, "{{if .Context.SelectedCommand -}}\nusage:",
		"{{if .Context.SelectedCommand -}}\n{{.Context.SelectedCommand.HelpLong|Examples}}usage:", 1)
	app.UsageTemplate(strings.Replace(text, "Flags:\n{{.Context.Flags|FlagsToTwoColumns|FormatTwoColumns}}\n",
		"{{range .Context.Flags|Grouped}}{{.Title}}:\n{{.Flags|FlagsToTwoColumns|FormatTwoColumns}}\n{{end -}}\n", 1))
}

func examples(text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n\n"
}

// flagGroup is flags that the help shows together.
type flagGroup struct {
	Title string
	Flags []*kingpin.FlagModel
}

// grouped puts flags together whose names begin alike (web., otlp.), after those that are alone.
func grouped(flags []*kingpin.FlagModel) []flagGroup {
	area := func(f *kingpin.FlagModel) string { return strings.SplitN(f.Name, ".", 2)[0] }
	of := map[string]int{}
	for _, f := range flags {
		of[area(f)]++
	}
	groups := []flagGroup{{Title: "Flags"}}
	for _, f := range flags {
		title := "Flags"
		if name := area(f); of[name] > 2 {
			title = "Flags of " + name
		}
		at := slices.IndexFunc(groups, func(g flagGroup) bool { return g.Title == title })
		if at < 0 {
			at, groups = len(groups), append(groups, flagGroup{Title: title})
		}
		groups[at].Flags = append(groups[at].Flags, f)
	}
	return groups
}
