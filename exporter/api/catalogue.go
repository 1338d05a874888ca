package api

import (
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// CatalogueList is the answer to GET /api/v1/catalogue.
type CatalogueList struct {
	Catalogues []Catalogue `json:"catalogues"`
	More       int         `json:"more,omitempty"`     // MPI_COMM_WORLDs left out to bound the answer: ask for a job's
	LeftOut    []LeftOut   `json:"left_out,omitempty"` // whose they are
	Errors     []string    `json:"errors,omitempty"`   // of ranks that could not be read
}

// Catalogue is all that MPI_T offers in one rank.
type Catalogue struct {
	Rank             RankStatus              `json:"rank"`
	Variables        []VariableStatus        `json:"variables"` // sorted by name and class
	ControlVariables []ControlVariableStatus `json:"control_variables"`
	Categories       []CategoryStatus        `json:"categories"` // each behind its parents
	// MPI_T_category_changed's; nil: not known
	CategoryStamp  *uint64        `json:"category_stamp,omitempty"`
	Objects        []ObjectStatus `json:"objects"` // in the order of their making
	ObjectsMissing uint64         `json:"objects_missing,omitempty"`
}

// ObjectStatus is an MPI object of a rank.
type ObjectStatus struct {
	ID         uint32            `json:"id"`   // of the agent's, in this process
	Kind       string            `json:"kind"` // as the label of metrics: comm, win, file …
	Name       string            `json:"name"` // empty: it has none
	Predefined bool              `json:"predefined,omitempty"`
	Inter      bool              `json:"inter,omitempty"`
	Size       *int              `json:"size,omitempty"` // nil: the kind has none
	Rank       *int              `json:"rank,omitempty"` // its own in it
	Created    *time.Time        `json:"created,omitempty"`
	On         string            `json:"on,omitempty"`      // name of the communicator that it was made on
	OnID       uint32            `json:"on_id,omitempty"`   // and its id
	Details    map[string]string `json:"details,omitempty"` // see docs/internals/protocol.md, Objects
}

// VariableStatus is a performance variable and what becomes of it.
type VariableStatus struct {
	Name         string             `json:"name"`
	Class        mpit.Class         `json:"class"`
	Description  string             `json:"description"`
	Verbosity    mpit.Verbosity     `json:"verbosity"`
	Bind         mpit.Bind          `json:"bind"`
	Datatype     mpit.Datatype      `json:"datatype"`
	ReadOnly     bool               `json:"readonly"`
	Continuous   bool               `json:"continuous"`
	Atomic       bool               `json:"atomic"`
	Distribution bool               `json:"distribution,omitempty"` // see mpit.Variable
	Enum         []mpit.EnumItem    `json:"enum,omitempty"`
	OnRequest    bool               `json:"on_request,omitempty"` // see mpit.Variable
	State        mpit.VariableState `json:"state"`                // open, or what was in the way
	Code         string             `json:"code,omitempty"`       // MPI_T's, where it was MPI_T that was in the way
	Metric       string             `json:"metric,omitempty"`
	Kind         string             `json:"kind,omitempty"`    // of the metric
	Unit         string             `json:"unit,omitempty"`    // of the metric, in UCUM
	Dropped      string             `json:"dropped,omitempty"` // why it has no metric
	Categories   []string           `json:"categories,omitempty"`

	index int // MPI_T's, or the agent's of a variable of its own; no two have the same
}

// ControlVariableStatus is a control variable with its value.
type ControlVariableStatus struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Scope       mpit.Scope      `json:"scope"`
	Verbosity   mpit.Verbosity  `json:"verbosity"`
	Datatype    mpit.Datatype   `json:"datatype"`
	Bind        mpit.Bind       `json:"bind"`
	Enum        []mpit.EnumItem `json:"enum,omitempty"`
	Value       *string         `json:"value,omitempty"` // as text, elements separated by commas; nil: not read
	Code        string          `json:"code,omitempty"`  // why not
	// of a bound variable: its values on some of the objects
	Objects    []ObjectValueStatus `json:"objects,omitempty"`
	Categories []string            `json:"categories,omitempty"`

	index int // MPI_T's
}

// ObjectValueStatus is the value of a bound control variable on one object.
type ObjectValueStatus struct {
	ID    uint32  `json:"id"`             // ObjectStatus.ID
	Name  string  `json:"name,omitempty"` // the object's
	Value *string `json:"value,omitempty"`
	Code  string  `json:"code,omitempty"`
}

// CategoryStatus is a category, with the names of what is in it.
type CategoryStatus struct {
	Name             string   `json:"name"`
	Description      string   `json:"description"`
	Depth            int      `json:"depth"` // 0: no category has it
	Parents          []string `json:"parents"`
	Variables        []string `json:"variables"`
	ControlVariables []string `json:"control_variables"`
	Subcategories    []string `json:"subcategories"`

	variables, controls []int // MPI_T's indices
}

// Update takes over what a later sample of the same rank says: its variables, and its objects.
func (c *Catalogue) Update(later *Catalogue) {
	c.Variables, c.Objects, c.ObjectsMissing = later.Variables, later.Objects, later.ObjectsMissing
	if later.CategoryStamp != nil {
		c.CategoryStamp = later.CategoryStamp
	}
	c.categorize()
}

// categorize writes at the variables in which categories they are. By index, for several variables may have one name.
func (c *Catalogue) categorize() {
	variables, controls := map[int][]string{}, map[int][]string{}
	note := func(of map[int][]string, indices []int, name string) {
		for _, index := range indices {
			if had := of[index]; len(had) == 0 || had[len(had)-1] != name {
				of[index] = append(had, name)
			}
		}
	}
	for i := range c.Categories {
		g := &c.Categories[i]
		note(variables, g.variables, g.Name)
		note(controls, g.controls, g.Name)
	}
	for i := range c.Variables {
		c.Variables[i].Categories = variables[c.Variables[i].index]
	}
	for i := range c.ControlVariables {
		c.ControlVariables[i].Categories = controls[c.ControlVariables[i].index]
	}
}
