package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A function is what calls are counted as: a name, without its form for large counts.
type function struct {
	name       string
	section    string
	parameters []parameter
	bind       binding
	movement   movement
	// The functions to stand in front of, each also under its PMPI_ name: the plain one first.
	wrappers []wrapper
}

// A wrapper is a function of the library that counts as a function.
type wrapper struct {
	symbol    string
	wide      bool   // counts are MPI_Counts
	since     string // the MPI version that has it; "": 3.1 or older, or an extension
	extension bool   // MPIX_
}

func (f function) number() string { return "FUNCTION_" + f.name }

// sections are the table's headings, in its order.
func sections(functions []function) []string {
	var all []string
	for _, f := range functions {
		if !slices.Contains(all, f.section) {
			all = append(all, f.section)
		}
	}
	return all
}

var (
	heading      = regexp.MustCompile(`^\[([a-z -]+)\]$`)
	functionName = regexp.MustCompile(`^MPI_[A-Z][a-z_]+$`)
)

// forms are what the first column says beside the name.
type forms struct {
	nonblocking, persistent, wide bool
	since                         string
}

func parseForms(words []string) (forms, error) {
	var f forms
	for _, w := range words {
		switch w {
		case "I":
			f.nonblocking = true
		case "init":
			f.persistent = true
		case "_c":
			f.wide = true
		case "4.0", "4.1":
			f.since = w
		default:
			return f, fmt.Errorf("%q is no form: I, init, _c, 4.0 or 4.1", w)
		}
	}
	return f, nil
}

// parseTable reads the whole table; file is what it is called in errors.
func parseTable(file, text string) ([]function, error) {
	var (
		all     []function
		section string
		lines   = map[string]int{} // of functions
	)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if h := heading.FindStringSubmatch(line); h != nil {
			section = h[1]
			continue
		}
		functions, err := parseLine(section, line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		for _, f := range functions {
			if other, twice := lines[f.name]; twice {
				return nil, fmt.Errorf("%s:%d: %s stands in line %d already", file, i+1, f.name, other)
			}
			lines[f.name] = i + 1
		}
		all = append(all, functions...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no function", file)
	}
	return all, nil
}

// parseLine reads one line: a function with its forms.
func parseLine(section, line string) ([]function, error) {
	columns := strings.Split(line, "|")
	if len(columns) != 3 {
		return nil, fmt.Errorf("%d columns, not three: name forms | parameters | bytes", len(columns))
	}
	if section == "" {
		return nil, fmt.Errorf("no [section] stands in front of it")
	}
	first := strings.Fields(columns[0])
	if len(first) == 0 || !functionName.MatchString(first[0]) {
		return nil, fmt.Errorf("%q is no name of an MPI function", strings.Join(first, " "))
	}
	name := first[0]
	f, err := parseForms(first[1:])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	words := strings.Fields(columns[1])
	parameters, err := parseParameters(words)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m, err := parseMovement(strings.TrimSpace(columns[2]), parameters)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}

	made := []function{newFunction(section, name, parameters, m, f.since, f.wide)}
	if f.nonblocking {
		more, err := parseParameters(append(slices.Clone(words), "request"))
		if err != nil {
			return nil, fmt.Errorf("the non-blocking form of %s: %w", name, err)
		}
		made = append(made, newFunction(section, "MPI_I"+lowerFirst(strings.TrimPrefix(name, "MPI_")), more, m,
			f.since, f.wide))
	}
	if f.persistent {
		more, err := parseParameters(append(slices.Clone(words), "info", "request"))
		if err != nil {
			return nil, fmt.Errorf("the persistent form of %s: %w", name, err)
		}
		init := newFunction(section, name+"_init", more, movement{}, "4.0", f.wide)
		init.wrappers = append(init.wrappers, wrapper{symbol: strings.Replace(init.name, "MPI_", "MPIX_", 1),
			extension: true})
		made = append(made, init)
	}
	return made, nil
}

func newFunction(section, name string, parameters []parameter, m movement, since string, wide bool) function {
	bind, _ := object(parameters)
	f := function{name: name, section: section, parameters: parameters, bind: bind, movement: m}
	f.wrappers = []wrapper{{symbol: name, since: since}}
	if wide {
		// The forms for large counts came with 4.0.
		f.wrappers = append(f.wrappers, wrapper{symbol: name + "_c", wide: true, since: max(since, "4.0")})
	}
	return f
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
