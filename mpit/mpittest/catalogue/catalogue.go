// Package catalogue reads lists of the performance variables that MPI libraries have, for tests and for
// docs/metrics.md. The lists stand in mapping/testdata/catalogues and hold facts alone: names, classes, datatypes.
// Only tests use it.
package catalogue

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Catalogue is the performance variables of one version of an MPI library.
type Catalogue struct {
	Name    string `yaml:"-"`       // of the file, without .yaml
	Library string `yaml:"library"` // as rules name it: openmpi, mpich …; empty: the agent's own, in any library
	Version string `yaml:"version"` // what MPI_Get_library_version answers, its first line
	Source  string `yaml:"source"`  // where the facts are from, in words
	// Like names another catalogue, whose variables stand in for this library's: of that one nothing is public.
	Like      string     `yaml:"like,omitempty"`
	Variables []Variable `yaml:"variables"`
}

// Variable is a performance variable as its library declares it.
type Variable struct {
	Name        string   `yaml:"name"`
	Class       string   `yaml:"class"` // as rules write it: counter, highwatermark …
	Datatype    string   `yaml:"datatype"`
	Bind        string   `yaml:"bind,omitempty"`        // comm, win …; empty: no object
	Verbosity   string   `yaml:"verbosity"`             // user_basic … mpidev_all
	Count       int      `yaml:"count,omitempty"`       // of elements; 0: one
	Peers       bool     `yaml:"peers,omitempty"`       // an element for each process of the object
	Enum        []string `yaml:"enum,omitempty"`        // of a STATE: names of the values from 0 on
	Category    string   `yaml:"category,omitempty"`    // the one it stands in directly
	Description string   `yaml:"description,omitempty"` // ours, not the library's

	Distribution bool `yaml:"distribution,omitempty"` // docs/internals/protocol.md, Distributions
}

// datatypes are those of MPI-4.1 §15.3.7 by the names that catalogues give them.
var datatypes = map[string]struct {
	datatype mpit.Datatype
	bytes    int
}{
	"int": {mpit.DatatypeInt, 4}, "unsigned": {mpit.DatatypeUnsigned, 4},
	"unsigned_long":      {mpit.DatatypeUnsignedLong, 8},
	"unsigned_long_long": {mpit.DatatypeUnsignedLongLong, 8}, "double": {mpit.DatatypeDouble, 8},
	"char":   {mpit.DatatypeChar, 1},
	"uint64": {mpit.DatatypeUint64, 8},
}

// Read reads all catalogues of a directory, in the order of their names. An error names the file.
func Read(dir string) ([]*Catalogue, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing catalogues: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no catalogues in %s", dir)
	}
	var list []*Catalogue
	for _, file := range files {
		c, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		list = append(list, c)
	}
	for _, c := range list {
		if c.Like == "" {
			continue
		}
		at := slices.IndexFunc(list, func(o *Catalogue) bool { return o.Name == c.Like && o.Like == "" })
		if at < 0 {
			return nil, fmt.Errorf("%s.yaml: like names %q, which is no catalogue of its own", c.Name, c.Like)
		}
		c.Variables = list[at].Variables
	}
	return list, nil
}

func read(file string) (*Catalogue, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &Catalogue{Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	seen := map[[2]string]bool{}
	for i := range c.Variables {
		v := &c.Variables[i]
		if _, err := v.mpit(); err != nil {
			return nil, fmt.Errorf("variable %q: %w", v.Name, err)
		}
		key := [2]string{v.Name, v.Class}
		if seen[key] {
			return nil, fmt.Errorf("variable %q of class %s stands twice", v.Name, v.Class)
		}
		seen[key] = true
	}
	return c, nil
}

// MPIT returns the variables as an agent tells of them, all open, numbered from 0.
func (c *Catalogue) MPIT() []mpit.Variable {
	var enums []*mpit.Enum
	list := make([]mpit.Variable, 0, len(c.Variables))
	for i := range c.Variables {
		v, err := c.Variables[i].mpit()
		if err != nil {
			panic(err) // Read has asked
		}
		v.ID, v.Index = uint32(i), i
		if items := c.Variables[i].Enum; len(items) > 0 {
			e := &mpit.Enum{ID: uint32(len(enums)), Name: v.Name}
			for value, name := range items {
				e.Items = append(e.Items, mpit.EnumItem{Value: int64(value), Name: name})
			}
			enums = append(enums, e)
			v.Enum = e
		}
		list = append(list, v)
	}
	return list
}

// Elements returns how many elements arrays have, by name, with perPeer for those that have one for each process.
func (c *Catalogue) Elements(perPeer int) map[string]int {
	elements := map[string]int{}
	for _, v := range c.Variables {
		switch {
		case v.Peers:
			elements[v.Name] = perPeer
		case v.Count > 1:
			elements[v.Name] = v.Count
		}
	}
	return elements
}

// Categories returns the categories that the variables stand in, in the order of their first variables.
func (c *Catalogue) Categories() []mpit.Category {
	var list []mpit.Category
	at := map[string]int{}
	for i, v := range c.Variables {
		if v.Category == "" {
			continue
		}
		n, ok := at[v.Category]
		if !ok {
			n = len(list)
			at[v.Category] = n
			list = append(list, mpit.Category{Index: n, Name: v.Category})
		}
		list[n].Variables = append(list[n].Variables, i)
	}
	return list
}

func (v *Variable) mpit() (mpit.Variable, error) {
	m := mpit.Variable{Name: v.Name, Description: v.Description, ReadOnly: true, Continuous: true,
		Distribution: v.Distribution}
	if err := m.Class.UnmarshalText([]byte(strings.ToUpper(v.Class))); err != nil {
		return m, err
	}
	if err := m.Verbosity.UnmarshalText([]byte(strings.ToUpper(v.Verbosity))); err != nil {
		return m, err
	}
	datatype, ok := datatypes[v.Datatype]
	if !ok {
		return m, fmt.Errorf("no datatype %q", v.Datatype)
	}
	m.Datatype, m.DatatypeBytes = datatype.datatype, datatype.bytes
	if v.Bind != "" {
		if m.Bind, ok = mpit.BindOfLabel(v.Bind); !ok {
			return m, fmt.Errorf("no bind %q", v.Bind)
		}
	}
	return m, nil
}
