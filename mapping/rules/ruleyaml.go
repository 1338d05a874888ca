package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

func placeOf(n *yaml.Node) place { return place{n.Line, n.Column} }

// reader reads YAML into the types of rule files, strictly: what it doesn't understand is a problem, and where
// everything stands is kept. The keys are those of the types' tags.
type reader struct {
	file     string
	problems Problems
	places   map[string]place
	broken   map[string]bool // what could not be read, and rules and so on with something like that
}

func (r *reader) problem(at place, what, remedy string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: at.line, Column: at.column, What: what,
		Remedy: remedy})
}

// read fills in what a text says.
func (r *reader) read(text []byte, into *File) {
	r.broken = map[string]bool{}
	if len(text) > maxFile {
		r.problem(place{1, 1}, fmt.Sprintf("the file has more than %d bytes", maxFile),
			"share its rules out among several files, or give the right file")
		return
	}
	if at, ok := invalidText(text); ok {
		r.problem(at, "what stands here is not UTF-8 text", "save the file as UTF-8, without control characters")
		return
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var document, next yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		r.syntax(err, text)
		return
	}
	switch err := d.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.syntax(err, text)
		return
	default:
		r.problem(placeOf(&next), "a second document begins here", "take the --- out, or make it a file of its own")
		return
	}
	root := document.Content[0]
	if alias := findAlias(root); alias != nil {
		r.problem(placeOf(alias), fmt.Sprintf("*%s is read as a YAML alias, and rule files have none", alias.Value),
			`put a pattern that begins with * in quotes; write out what was meant to be repeated`)
		return
	}
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return // nothing but comments
	}
	r.value("", root, reflect.ValueOf(into).Elem())
}

// invalidText finds the first byte that is no text.
func invalidText(text []byte) (place, bool) {
	at := place{1, 1}
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRune(text[i:])
		switch {
		case c == utf8.RuneError && n <= 1, c < ' ' && c != '\n' && c != '\r' && c != '\t', c >= 0x7f && c < 0xa0 &&
			c != 0x85,
			c == '\ufeff' && i > 0, c >= 0xfffe && c <= 0xffff:
			return at, true
		case c == '\n':
			at = place{at.line + 1, 1}
		default:
			at.column++
		}
		i += n
	}
	return place{}, false
}

func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n
	}
	for _, c := range n.Content {
		if a := findAlias(c); a != nil {
			return a
		}
	}
	return nil
}

var (
	syntaxLine    = regexp.MustCompile(`(?s)\A(?:yaml: )?line ([0-9]+): (.*)\z`)
	unknownAnchor = regexp.MustCompile(`\Aunknown anchor '(.*)' referenced\z`)
)

// syntax is an error of the YAML package. It has a line, more or less, but no column.
func (r *reader) syntax(err error, text []byte) {
	what, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := syntaxLine.FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1])
		what = m[2]
	}
	const quotes = "put values in quotes that begin with *, %, &, @, !, {, [ or a backquote"
	remedy := "mend indentation, brackets or quotes from here on"
	switch anchor := unknownAnchor.FindStringSubmatch(what); {
	case anchor != nil:
		what = fmt.Sprintf("*%s is read as a YAML alias, and rule files have none", anchor[1])
		remedy = "put a pattern that begins with * in quotes"
		alias := regexp.MustCompile(`(?m)^[^#\n]*[\s:,\[{-]\*` + regexp.QuoteMeta(anchor[1]))
		if at := alias.FindIndex(text); at != nil {
			line = 1 + bytes.Count(text[:at[1]], []byte("\n"))
		}
	case strings.Contains(what, "cannot start any token") && tabbed(text, line):
		remedy = "indent with spaces, not with tabs"
	case strings.Contains(what, "cannot start any token"), strings.Contains(what, "alphabetic or numeric"):
		remedy = quotes
	case strings.Contains(what, "mapping values are not allowed"):
		remedy = "put a value that contains a colon in quotes, or mend the indentation"
	case strings.HasPrefix(what, "did not find expected"): // these lines are counted from 0
		line++
	}
	line = max(1, min(line, 1+bytes.Count(text, []byte("\n"))))
	r.problem(place{line, 0}, "this is no YAML: "+what, remedy)
}

// tabbed says whether a line is indented with tabs.
func tabbed(text []byte, line int) bool {
	lines := bytes.SplitN(text, []byte("\n"), line+1)
	return line <= len(lines) && bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t"))
}

// value reads one value. It says whether all of it could be read.
func (r *reader) value(path string, n *yaml.Node, v reflect.Value) bool {
	if path != "" {
		r.places[path] = placeOf(n)
	}
	wrong := func(remedy string) bool {
		r.problem(placeOf(n), fmt.Sprintf("%s is %s", r.called(path), describe(n)), remedy)
		return false
	}
	if n.ShortTag() == "!!null" {
		return wrong("write a value, or take the key out")
	}
	if l, ok := v.Addr().Interface().(*List); ok && n.Kind == yaml.ScalarNode {
		var word string
		if !r.value(path+"[0]", n, reflect.ValueOf(&word).Elem()) {
			return false
		}
		*l = List{word}
		return true
	}
	switch v.Kind() {
	case reflect.Struct:
		return r.mapping(path, n, v)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return wrong("write a list")
		}
		if len(n.Content) == 0 {
			return wrong("write something into it, or take the key out")
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		ok := true
		for i, c := range n.Content {
			if item := fmt.Sprintf("%s[%d]", path, i); !r.value(item, c, v.Index(i)) {
				r.broken[item] = true
				ok = false
			}
		}
		return ok
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.String && n.Kind == yaml.ScalarNode && n.Value == "" {
			v.Set(reflect.ValueOf(new(string))) // where it may be empty
			return true
		}
		v.Set(reflect.New(v.Type().Elem()))
		return r.value(path, n, v.Elem())
	case reflect.String:
		switch n.ShortTag() {
		case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		default:
			remedy := "write a word or a text"
			if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[1].ShortTag() == "!!null" {
				remedy = fmt.Sprintf(`put it in quotes: "{%s}"`, n.Content[0].Value)
			}
			return wrong(remedy)
		}
		if n.Value == "" {
			r.problem(placeOf(n), r.called(path)+" is empty", "write a value, or take the key out")
			return false
		}
		v.SetString(n.Value)
		return true
	case reflect.Bool:
		if n.ShortTag() != "!!bool" || n.Decode(v.Addr().Interface()) != nil {
			return wrong("write true or false")
		}
		return true
	case reflect.Int:
		if n.ShortTag() != "!!int" || n.Decode(v.Addr().Interface()) != nil {
			return wrong("write a whole number")
		}
		return true
	case reflect.Float64:
		if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" || n.Decode(v.Addr().Interface()) != nil {
			return wrong("write a number")
		}
		return true
	}
	return wrong("take it out")
}

// mapping reads the keys of a struct.
func (r *reader) mapping(path string, n *yaml.Node, v reflect.Value) bool {
	fields := keysOf(v.Type())
	if n.Kind != yaml.MappingNode {
		r.problem(placeOf(n), fmt.Sprintf("%s is %s", r.called(path), describe(n)),
			"write keys with values: "+strings.Join(slices.Sorted(keysIn(fields)), ", "))
		return false
	}
	ok, seen := true, map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, known := fields[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.problem(placeOf(key), "a key is "+describe(key),
				"write one of "+strings.Join(slices.Sorted(keysIn(fields)), ", "))
			ok = false
		case !known:
			r.problem(placeOf(key), fmt.Sprintf("%s has no key %q", r.called(path),
				mapping.CleanText(key.Value, 64)), oneKey(path, key.Value, fields))
			ok = false
		case seen[key.Value] > 0:
			r.problem(placeOf(key), fmt.Sprintf("the key %s stands there twice, first in line %d", key.Value,
				seen[key.Value]), "take one out")
			ok = false
		default:
			seen[key.Value] = key.Line
			at := key.Value
			if path != "" {
				at = path + "." + at
			}
			if !r.value(at, value, v.Field(field)) {
				r.broken[at], ok = true, false
				if f := v.Field(field); f.Kind() != reflect.Struct &&
					(f.Kind() != reflect.Slice || f.Type().Elem().Kind() != reflect.Struct) {
					f.SetZero() // half of it would make more problems that are none
				}
			}
		}
	}
	return ok
}

// keysOf is the keys of a struct with its fields.
func keysOf(t reflect.Type) map[string]int {
	keys := map[string]int{}
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); key != "" && key != "-" {
			keys[key] = i
		}
	}
	return keys
}

func keysIn(fields map[string]int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range fields {
			if !yield(key) {
				return
			}
		}
	}
}

// removedKeys are keys that rule files once had, with what to do instead.
var removedKeys = map[string]string{
	"match.category": "match by name instead; mpit-exporter list --category=NAME shows which names a category has",
}

// oneKey is the remedy for a key that isn't known: the nearest one, where it belongs, or all.
func oneKey(path, key string, fields map[string]int) string {
	if key == "<<" {
		return "write the keys out"
	}
	if remedy := removedKeys[path[strings.LastIndexByte(path, '.')+1:]+"."+key]; remedy != "" {
		return remedy
	}
	rule, match := keysOf(reflect.TypeFor[Rule]()), keysOf(reflect.TypeFor[Match]())
	if _, ok := match[key]; ok && strings.HasPrefix(path, "rules[") && !strings.HasSuffix(path, ".match") {
		return "write it under match"
	}
	if _, ok := rule[key]; ok && strings.HasSuffix(path, ".match") {
		return "write it beside match, not under it"
	}
	return oneOf(key, slices.Sorted(keysIn(fields)))
}

// called is what a path is called in a sentence.
func (r *reader) called(path string) string {
	switch {
	case path == "":
		return "a rule file"
	case strings.HasPrefix(path, "rules[") && strings.HasSuffix(path, "]") && !strings.Contains(path, "."):
		return "a rule"
	case strings.HasPrefix(path, "identity[") && strings.HasSuffix(path, "]") && !strings.Contains(path, "."):
		return "a rule of identity"
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// describe says what a node is.
func describe(n *yaml.Node) string {
	switch {
	case n.ShortTag() == "!!null":
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(mapping.CleanText(n.Value, 64))
}
