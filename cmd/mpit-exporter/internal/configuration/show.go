package configuration

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// Shipped are the rules that are shipped, as one rule file.
func Shipped() (string, error) { return joined("# The rules that are shipped.\n", nil) }

// Effective is one rule file with the rules of the given files, then the shipped ones, and all settings that are in
// force with them.
func Effective(paths []string) (string, error) {
	_, settings, err := Load(paths, 0)
	if err != nil {
		return "", err
	}
	head, err := yaml.Marshal(rules.File{Rank: settings.Rank, Limits: limitsInForce(settings.Limits),
		Identity: settings.Identity})
	if err != nil {
		return "", fmt.Errorf("config show: %w", err)
	}
	return joined("# Of all rules that match a variable, the first that sets a property wins.\n"+string(head),
		settings.Files)
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

// joined makes one file of several: the head, then the rules of each file, and of the shipped ones, under its name.
// Their comments stay.
func joined(head string, files []string) (string, error) {
	var list yaml.Node
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil {
			err = appendRules(&list, name, text)
		}
		if err != nil {
			return "", fmt.Errorf("rule files: %w", err)
		}
	}
	shipped := rules.DefaultFiles()
	err := fs.WalkDir(shipped, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(shipped, name)
		if err != nil {
			return err
		}
		return appendRules(&list, name, text)
	})
	if err != nil {
		return "", fmt.Errorf("shipped rules: %w", err)
	}
	var out bytes.Buffer
	out.WriteString(head)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string]*yaml.Node{"rules": &list}); err != nil {
		return "", fmt.Errorf("config show: %w", err)
	}
	return out.String(), nil
}

// appendRules adds the rules of a file to a list.
func appendRules(list *yaml.Node, name string, text []byte) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil // nothing but comments
	}
	keys := document.Content[0].Content
	at := slices.IndexFunc(keys, func(n *yaml.Node) bool { return n.Value == "rules" })
	if at < 0 || len(keys[at+1].Content) == 0 {
		return nil
	}
	key, items := keys[at], keys[at+1].Content
	comment := "# ---- " + name
	for _, c := range []string{document.HeadComment, key.HeadComment, items[0].HeadComment} {
		if c != "" {
			comment += "\n" + c
		}
	}
	items[0].HeadComment = comment
	list.Kind = yaml.SequenceNode
	list.Content = append(list.Content, items...)
	return nil
}
