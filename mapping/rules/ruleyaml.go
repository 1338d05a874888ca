package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// removedKeys are keys that rule files once had, by what the YAML package says of them, with what to do instead.
var removedKeys = map[string]string{
	"field category not found in type rules.Match": "; match by name instead; mpit-exporter list --category=NAME " +
		"shows which names a category has",
	"field rank not found in type rules.Rule": oneEach,
	"field rank not found in type rules.File": oneEach,
}

const oneEach = "; each rank has series of its own; exec --calls=light leaves few of them (docs/capacity.md)"

// UnmarshalYAML reads one word or a list of them.
func (l *List) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return n.Decode((*[]string)(l))
	}
	*l = List{""}
	return n.Decode(&(*l)[0])
}

// read fills in what a text says, and notes where everything stands. What the YAML package doesn't understand is a
// problem, also keys that there aren't, and what has no value: a condition without one would match everything.
func (p *parsed) read(text []byte) Problems {
	if len(text) > maxFile {
		return Problems{p.at("").because("share its rules out among several files, or give the right file",
			"the file has more than %d bytes", maxFile)}
	}
	var document, next yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return p.misread(err)
	}
	if err := d.Decode(&next); err == nil {
		return Problems{{File: p.name, Line: next.Line, Column: next.Column,
			What: "a second document begins here; take the --- out, or make it a file of its own"}}
	} else if !errors.Is(err, io.EOF) {
		return p.misread(err)
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&p.File); err != nil {
		return p.misread(err)
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode {
		return nil // nothing but comments
	}
	return p.locate("", root)
}

var yamlLine = regexp.MustCompile(`\A(?:yaml: )?(?:line ([0-9]+): )?`)

// misread makes problems of an error of the YAML package, which mostly has lines, but no columns.
func (p *parsed) misread(err error) Problems {
	wrong, is := errors.AsType[*yaml.TypeError](err)
	if !is {
		line, text := lineOf(err.Error())
		return Problems{{File: p.name, Line: line, What: "this is no YAML: " + text +
			"; mend the indentation, or put in quotes what begins with * or holds a colon"}}
	}
	var problems Problems
	for _, text := range wrong.Errors {
		line, text := lineOf(text)
		problems = append(problems, Problem{File: p.name, Line: line, What: text + removedKeys[text]})
	}
	return problems
}

// lineOf takes the line out of a text of the YAML package; 0: there is none.
func lineOf(text string) (line int, rest string) {
	m := yamlLine.FindStringSubmatch(text)
	line, _ = strconv.Atoi(m[1])
	return line, text[len(m[0]):]
}

// locate notes where a value and all that is in it stand, and finds what is empty.
func (p *parsed) locate(path string, n *yaml.Node) (problems Problems) {
	here := Problem{File: p.name, Line: n.Line, Column: n.Column}
	p.places[path] = here
	mayBeEmpty := strings.HasSuffix(path, ".replacement") || strings.HasSuffix(path, ".separator")
	switch {
	case strings.HasPrefix(path, "limits.") && n.Kind == yaml.ScalarNode && n.ShortTag() != "!!int":
		return Problems{here.because("write a whole number", "%s is %s", path, n.Value)} // 1.5 would become 1
	case n.ShortTag() == "!!null", n.Kind == yaml.SequenceNode && len(n.Content) == 0,
		n.Kind == yaml.ScalarNode && n.Value == "" && !mayBeEmpty:
		return Problems{here.because("write one, or take the key out", "%s has no value", path)}
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			problems = append(problems, p.locate(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := n.Content[i].Value
			if path != "" {
				at = path + "." + at
			}
			problems = append(problems, p.locate(at, n.Content[i+1])...)
		}
	}
	return problems
}
