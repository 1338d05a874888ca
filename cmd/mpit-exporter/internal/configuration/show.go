package configuration

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// ruleText is a rule file as somebody wrote it, comments and all.
type ruleText struct {
	name, text string
}

// Shipped are the rules that are shipped, as one rule file.
func Shipped() (string, error) {
	files, err := shippedFiles()
	if err != nil {
		return "", err
	}
	return strings.Join(joinRules("# The rules that are shipped.\n", files), "\n") + "\n", nil
}

func shippedFiles() ([]ruleText, error) {
	files := rules.DefaultFiles()
	names, err := fs.Glob(files, "*/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("shipped rules: %w", err)
	}
	list, err := readRules(names, func(name string) ([]byte, error) { return fs.ReadFile(files, name) })
	if err != nil {
		return nil, fmt.Errorf("shipped rules: %w", err)
	}
	return list, nil
}

func readRules(names []string, read func(name string) ([]byte, error)) ([]ruleText, error) {
	var list []ruleText
	for _, name := range names {
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		list = append(list, ruleText{name, string(text)})
	}
	return list, nil
}

// Effective is one rule file with the rules of the given files, then the shipped ones, and all settings that are in
// force with them.
func Effective(paths []string) (string, error) {
	_, settings, err := Load(paths, 0)
	if err != nil {
		return "", err
	}
	files, err := Files(paths)
	if err != nil {
		return "", err
	}
	own, err := readRules(files, os.ReadFile)
	if err != nil {
		return "", fmt.Errorf("rule files: %w", err)
	}
	shipped, err := shippedFiles()
	if err != nil {
		return "", err
	}
	head, err := yaml.Marshal(rules.File{Rank: settings.Rank, Limits: limitsInForce(settings.Limits),
		Identity: settings.Identity})
	if err != nil {
		return "", fmt.Errorf("config show: %w", err)
	}
	intro := "# Of all rules that match a variable, the first that sets a property wins.\n" + string(head)
	return strings.Join(joinRules(intro, append(own, shipped...)), "\n") + "\n", nil
}

// limitsInForce lowers each limit of a part to that of the whole. Defaults may be above it; in a rule file that is a
// mistake.
func limitsInForce(l rules.Limits) rules.Limits {
	whole := l.Series
	for _, part := range []*int{&l.SeriesPerUser, &l.SeriesPerJob, &l.SeriesPerRank, &l.SeriesPerVariable} {
		whole = min(whole, *part)
		*part = whole
	}
	return l
}

// ruleIndent is how far rules are indented in what is shown.
const ruleIndent = "  "

// joinRules makes one file of several, as lines: the head, then the rules of each file under its name. They are as
// they were written, but for the indentation.
func joinRules(head string, files []ruleText) []string {
	lines := strings.Split(strings.TrimRight(head, "\n"), "\n")
	lines = append(lines, "rules:")
	for _, f := range files {
		lines = append(lines, "", ruleIndent+"# ---- "+f.name)
		lines = append(lines, ruleLines(f.text)...)
	}
	return lines
}

// ruleLines are the comments at the top of a rule file, and its rules. Rules in flow style are written anew, in block
// style.
func ruleLines(text string) []string {
	all := strings.Split(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\r\n", "\n"), "\n")
	var lines []string
	for _, line := range all {
		if !strings.HasPrefix(line, "#") {
			break
		}
		lines = append(lines, ruleIndent+line)
	}
	var document yaml.Node
	if yaml.Unmarshal([]byte(text), &document) != nil || len(document.Content) == 0 ||
		document.Content[0].Kind != yaml.MappingNode {
		return lines
	}
	keys := document.Content[0].Content
	for i := 0; i+1 < len(keys); i += 2 {
		key, list := keys[i], keys[i+1]
		if key.Value != "rules" || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
			continue
		}
		if list.Style&yaml.FlowStyle != 0 || list.Line <= key.Line {
			list.Style = 0
			written, err := yaml.Marshal(list)
			if err != nil {
				return lines
			}
			return append(lines, indented(strings.Split(strings.TrimRight(string(written), "\n"), "\n"), 1)...)
		}
		end := len(all)
		if i+2 < len(keys) {
			end = keys[i+2].Line - 1
		}
		return append(lines, indented(all[key.Line:end], list.Column)...)
	}
	return lines
}

// indented moves lines whose items begin in a column (the first is 1) to the column of rules.
func indented(lines []string, column int) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		body := strings.TrimLeft(line, " ")
		if body == "" {
			out = append(out, "")
			continue
		}
		out = append(out, strings.Repeat(" ", max(0, len(line)-len(body)+len(ruleIndent)-(column-1)))+body)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
