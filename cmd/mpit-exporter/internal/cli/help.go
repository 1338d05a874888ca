package cli

import (
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

// Help makes an application's help begin with what HelpLong has, which are examples.
func Help(app *kingpin.Application) {
	app.UsageFuncs(template.FuncMap{"Examples": examples})
	app.UsageTemplate(strings.Replace(kingpin.DefaultUsageTemplate, "{{if .Context.SelectedCommand -}}\nusage:",
		"{{if .Context.SelectedCommand -}}\n{{.Context.SelectedCommand.HelpLong|Examples}}usage:", 1))
}

func examples(text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n\n"
}
