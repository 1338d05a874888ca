package listing

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// savedFormat is the version of a saved catalogue.
const savedFormat = 1

// Saved is a catalogue without what differs between two processes, sorted: two builds of a library that offer the same
// have the same file. Its lists are those of api.Catalogue in JSON.
type Saved struct {
	Format           int     `json:"catalogue_format"`
	Library          string  `json:"library"`
	LibraryVersion   string  `json:"library_version"`
	Variables        []entry `json:"variables"`
	ControlVariables []entry `json:"control_variables"`
	Categories       []entry `json:"categories"`
}

// entry is a variable or a category: its properties in JSON.
type entry map[string]any

func (e entry) text(key string) string { text, _ := e[key].(string); return text }

// notSaved are properties of the process, or of the rules that say what becomes of a variable, and those of a category
// that its variables and subcategories have too.
var notSaved = []string{"state", "code", "value", "objects", "metric", "kind", "dropped", "on_request", "depth",
	"variables", "control_variables", "subcategories"}

// NewSaved returns what of a catalogue is saved.
func NewSaved(c *api.Catalogue) (*Saved, error) {
	s := &Saved{Format: savedFormat, Library: c.Rank.Library, LibraryVersion: c.Rank.LibraryVersion}
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	for _, list := range [][]entry{s.Variables, s.ControlVariables, s.Categories} {
		for _, e := range list {
			maps.DeleteFunc(e, func(key string, _ any) bool { return slices.Contains(notSaved, key) })
			for _, key := range []string{"categories", "parents"} {
				names, _ := e[key].([]any)
				slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			}
		}
		slices.SortStableFunc(list, func(a, b entry) int {
			return cmp.Or(strings.Compare(a.text("name"), b.text("name")), strings.Compare(a.text("class"), b.text("class")))
		})
	}
	return s, err
}

// Save writes the file that Load reads. It replaces regular files only: never /dev/null.
func (s *Saved) Save(path string) error {
	if about, err := os.Lstat(path); err == nil && !about.Mode().IsRegular() {
		return errors.New("this is not a regular file")
	}
	var text bytes.Buffer
	if err := cli.WriteJSON(&text, s); err != nil {
		return err
	}
	return cli.WriteFile(path, text.Bytes(), 0o644)
}

// Load reads a file that Save has written.
func Load(path string) (*Saved, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Saved{}
	err = json.Unmarshal(text, s)
	switch {
	case s.Format == 0:
		return nil, errors.Join(errors.New("this is not a file that list --save has written"), err)
	case s.Format != savedFormat:
		return nil, fmt.Errorf("this is a file of format %d; this version reads %d", s.Format, savedFormat)
	}
	return s, err
}

// comparison is how a catalogue differs from an earlier one: rows of a table, and how many there are of each change.
type comparison struct {
	rows                       [][]string
	came, went, changed, equal int
}

// Compare writes a line for each variable and category that has come, gone or changed, and a summary. path is the
// earlier catalogue's.
func Compare(w io.Writer, path string, before, now *Saved) (equal bool, err error) {
	var c comparison
	c.compare("pvar", before.Variables, now.Variables)
	c.compare("cvar", before.ControlVariables, now.ControlVariables)
	c.compare("category", before.Categories, now.Categories)
	place := func(word string) int { return strings.Index("came went changed pvar cvar category", word) }
	slices.SortFunc(c.rows, func(a, b []string) int {
		return cmp.Or(place(a[0])-place(b[0]), place(a[1])-place(b[1]), slices.Compare(a, b))
	})
	err = table.Write(w, []string{"CHANGE", "KIND", "NAME", "CLASS", "DETAILS"}, c.rows)
	_, last := fmt.Fprintf(w, "%d came, %d went, %d changed, %d are equal: %s in %s, %s now\n", c.came, c.went, c.changed,
		c.equal, mapping.OneLine(libraryTitle(before.Library, before.LibraryVersion)), path,
		mapping.OneLine(libraryTitle(now.Library, now.LibraryVersion)))
	return len(c.rows) == 0, errors.Join(err, last)
}

// compare compares entries of a kind by name and class. One whose class is gone, and another of its name new, has
// changed its class.
func (c *comparison) compare(kind string, before, now []entry) {
	note := func(count *int, change string, e entry, details string) {
		*count++
		c.rows = append(c.rows, table.Clean(change, kind, e.text("name"), e.text("class"), details))
	}
	left := map[string][]entry{} // by name
	for _, e := range before {
		left[e.text("name")] = append(left[e.text("name")], e)
	}
	for _, sameClass := range []bool{true, false} {
		now = slices.DeleteFunc(slices.Clone(now), func(e entry) bool {
			all := left[e.text("name")]
			at := slices.IndexFunc(all, func(o entry) bool { return !sameClass || o.text("class") == e.text("class") })
			if at < 0 {
				return false
			}
			if details := changes(all[at], e); details == "" {
				c.equal++
			} else {
				note(&c.changed, "changed", e, details)
			}
			left[e.text("name")] = slices.Delete(all, at, at+1)
			return true
		})
	}
	for _, e := range now {
		note(&c.came, "came", e, e.text("description"))
	}
	for _, all := range left {
		for _, e := range all {
			note(&c.went, "went", e, e.text("description"))
		}
	}
}

// changes are the properties that differ; "": none.
func changes(before, now entry) string {
	keys := entry{}
	maps.Copy(keys, before)
	maps.Copy(keys, now)
	var all []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if was, is := asText(before[key]), asText(now[key]); was != is {
			all = append(all, key+" "+was+" → "+is)
		}
	}
	return strings.Join(all, "; ")
}

func asText(property any) string {
	if property == nil {
		return "none"
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(property) // it was JSON
	return strings.TrimSpace(text.String())
}
