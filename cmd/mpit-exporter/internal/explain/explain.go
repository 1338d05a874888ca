// Package explain is config explain: what a performance variable becomes, and which rules decide it, as text and as JSON.
//
// The answers are mapping's (Mapper.Explain). Here are the question, as flags put it (Flags), and how the answers for several
// classes and libraries are told: Flags.Run is the way through.
package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/configuration"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Flags is what config explain is told of a variable.
type Flags struct {
	name                             string
	class, bind, verbosity, datatype string
	library, version                 string
	categories                       []string
	files                            []string
	output                           string
}

// AddTo adds the flags and arguments to a command.
func (x *Flags) AddTo(cmd *kingpin.CmdClause) {
	cmd.Arg("pvar", "Name of the performance variable.").Required().StringVar(&x.name)
	cmd.Flag("class", "Its class, as the library declares it: state, level, size, … (default: those of which rules "+
		"say something, or all).").PlaceHolder("CLASS").StringVar(&x.class)
	cmd.Flag("library", "MPI library: "+strings.Join(libraryNames,
		", ")+" (default: those that have rules for it, and any other).").PlaceHolder("NAME").StringVar(&x.library)
	cmd.Flag("library-version", "Version of the library, such as 4.1.4. Without it, rules for certain versions are "+
		"named as unsure.").PlaceHolder("V").StringVar(&x.version)
	cmd.Flag("bind", "Kind of object that it is bound to: comm, win, file, …, or none, the default.").Default("none").
		PlaceHolder("KIND").StringVar(&x.bind)
	cmd.Flag("verbosity", "Its verbosity: user_basic … mpidev_all. Without it, rules that match by verbosity are "+
		"named as unsure.").PlaceHolder("V").StringVar(&x.verbosity)
	cmd.Flag("category", "A category that it stands in, directly or through others; repeatable. Without it, rules "+
		"that match by category are named as unsure.").PlaceHolder("NAME").StringsVar(&x.categories)
	cmd.Flag("datatype", "Its datatype, such as unsigned_long or double (default: a usual one of the class).").
		PlaceHolder("TYPE").StringVar(&x.datatype)
	cmd.Flag("config.file", configuration.FileHelp).PlaceHolder("PATH").StringsVar(&x.files)
	cmd.Flag("output", "text or json.").Short('o').Default("text").EnumVar(&x.output, "text", "json")
}

// libraryNames are the libraries that rules can match, as rules call them.
var libraryNames = []string{mapping.OpenMPI, mapping.MPICH, mapping.MVAPICH, mapping.IntelMPI, mapping.CrayMPICH}

// Words as rules write them.
var (
	classWords = wordsOf(mpit.ClassState, mpit.ClassGeneric,
		func(c mpit.Class) string { return strings.ToLower(c.String()) })
	bindWords      = append([]string{"none"}, wordsOf(mpit.BindComm, mpit.BindSession, mpit.Bind.Label)...)
	verbosityWords = wordsOf(mpit.VerbosityUserBasic, mpit.VerbosityMPIDevAll,
		func(v mpit.Verbosity) string { return strings.ToLower(v.String()) })
	datatypeWords = wordsOf(mpit.DatatypeInt, mpit.DatatypeBool, func(d mpit.Datatype) string {
		return strings.ToLower(strings.TrimPrefix(d.String(), "MPI_"))
	})
)

func wordsOf[T ~uint8](first, last T, word func(T) string) (words []string) {
	for v := first; v <= last; v++ {
		words = append(words, word(v))
	}
	return words
}

// place is where a word stands in a list, in any case and with or without MPI's own prefixes; an error says what
// there is.
func place(flag, word string, words []string, prefixes ...string) (int, error) {
	short := strings.ToLower(word)
	for _, prefix := range prefixes {
		short = strings.TrimPrefix(short, prefix)
	}
	at := slices.Index(words, short)
	if at < 0 {
		return 0, cli.Usagef("config explain: --%s %q: must be one of %s", flag, word, strings.Join(words, ", "))
	}
	return at, nil
}

// question is what is to be explained: a variable of one of several classes, in one of several libraries.
type question struct {
	variable  mpit.Variable // without class
	datatype  bool          // it is given
	classes   []mpit.Class
	libraries []mapping.Library
}

// question checks the flags.
func (x *Flags) question() (q question, err error) {
	switch {
	case x.name == "":
		return q, cli.Usagef("config explain: the name of a performance variable is needed")
	case strings.ContainsAny(x.name, "*?"):
		return q, cli.Usagef("config explain: %q: the name of one variable is needed, without * and ?; "+
			"mpit-exporter list shows what there is", x.name)
	case x.version != "" && x.library == "":
		return q, cli.Usagef("config explain: --library-version %s: --library is needed as well: one of %s",
			x.version, strings.Join(libraryNames, ", "))
	case x.version != "" && (x.version[0] < '0' || x.version[0] > '9'):
		return q, cli.Usagef("config explain: --library-version %q: a version such as 4.1.4 is needed", x.version)
	}
	if err := configuration.CheckPaths("config explain: --config.file", x.files); err != nil {
		return q, err
	}
	q.variable.Name = x.name
	at, err := place("bind", x.bind, bindWords, "mpi_t_bind_", "mpi_")
	if err != nil {
		return q, err
	}
	q.variable.Bind = mpit.Bind(at)
	if x.verbosity != "" {
		if at, err = place("verbosity", x.verbosity, verbosityWords, "mpi_t_verbosity_"); err != nil {
			return q, err
		}
		q.variable.Verbosity = mpit.VerbosityUserBasic + mpit.Verbosity(at)
	}
	if q.datatype = x.datatype != ""; q.datatype {
		if at, err = place("datatype", x.datatype, datatypeWords, "mpi_"); err != nil {
			return q, err
		}
		q.variable.Datatype = mpit.DatatypeInt + mpit.Datatype(at)
	}
	if x.class != "" {
		if at, err = place("class", x.class, classWords, "mpi_t_pvar_class_"); err != nil {
			return q, err
		}
		q.classes = []mpit.Class{mpit.Class(at)}
	} else {
		for at := range classWords {
			q.classes = append(q.classes, mpit.Class(at))
		}
	}
	if x.library != "" {
		if at, err = place("library", x.library, libraryNames); err != nil {
			return q, err
		}
		q.libraries = []mapping.Library{{Name: libraryNames[at], Version: x.version}}
	} else {
		for _, name := range libraryNames {
			q.libraries = append(q.libraries, mapping.Library{Name: name})
		}
		q.libraries = append(q.libraries, mapping.Library{})
	}
	return q, nil
}

// callTimes is how the names of the agent's own distributions begin (docs/protocol.md, Distributions).
const callTimes = "mpit_call_time_"

// usualDatatype is what a variable of a class mostly is, out of what MPI-4.1 §15.3.7 allows.
func usualDatatype(c mpit.Class) mpit.Datatype {
	switch c {
	case mpit.ClassState:
		return mpit.DatatypeInt
	case mpit.ClassPercentage, mpit.ClassTimer:
		return mpit.DatatypeDouble
	}
	return mpit.DatatypeUnsignedLongLong
}

func datatypeBytes(d mpit.Datatype) int {
	switch d {
	case mpit.DatatypeChar, mpit.DatatypeBool:
		return 1
	case mpit.DatatypeInt, mpit.DatatypeUnsigned, mpit.DatatypeInt32, mpit.DatatypeUint32, mpit.DatatypeFloat:
		return 4
	}
	return 8
}

// Explained is what becomes of the variable as one class in one library.
type Explained struct {
	Library   string   `json:"library,omitempty"` // none: any that is not named
	Version   string   `json:"version,omitempty"`
	Class     string   `json:"class"`
	Datatype  string   `json:"datatype"`
	Metric    *Metric  `json:"metric,omitempty"`
	Dropped   string   `json:"dropped,omitempty"` // why there is no metric
	named     bool     // a rule has decided something that matches by name
	Series    []string `json:"series"`
	Decisions []Reason `json:"decisions"`
	Unsure    []string `json:"unsure,omitempty"` // rules, by file and line
}

// Metric is the metric that a variable becomes.
type Metric struct {
	Name          string `json:"name"`
	Type          string `json:"type"`
	Unit          string `json:"unit,omitempty"`
	Help          string `json:"help"`
	OpenTelemetry string `json:"opentelemetry"`
}

// Reason is one property and who set it.
type Reason struct {
	Property string `json:"property"`
	Value    string `json:"value"`
	Rule     string `json:"rule,omitempty"`  // file and line; none: the default
	Agent    bool   `json:"agent,omitempty"` // whatever rules say: it is what the agent measures
}

// Run answers the question that the flags put.
func (x *Flags) Run(std cli.Stdio) error {
	q, err := x.question()
	if err != nil {
		return err
	}
	rules, _, err := configuration.Load(x.files, 0)
	if err != nil {
		return err
	}
	list, others := q.answer(rules.Mapper, x.categories)
	if x.output == "json" {
		encoder := json.NewEncoder(std.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(struct {
			Name         string      `json:"name"`
			Bind         string      `json:"bind"`
			Explanations []Explained `json:"explanations"`
		}{x.name, bindWords[q.variable.Bind], list})
	} else {
		err = writeExplained(std.Out, x.name, list, others)
	}
	if err != nil {
		return fmt.Errorf("config explain: writing: %w", err)
	}
	return nil
}

// answer explains the variable in each library, in each class. Where several could be meant, it leaves out the
// libraries of which the rules say nothing that they don't say of any, and the classes of which they say nothing at
// all, if they say it of others. Where neither library nor class is given and rules know the variable by its name, it
// says how many of the others it leaves out.
func (q *question) answer(m *mapping.Mapper, categories []string) (list []Explained, others int) {
	one := func(lib mapping.Library, class mpit.Class) Explained {
		v := q.variable
		v.Class = class
		switch {
		case q.datatype:
		case class == mpit.ClassTimer && strings.HasPrefix(v.Name, callTimes):
			v.Datatype, v.Distribution = mpit.DatatypeUint64, true
		default:
			v.Datatype = usualDatatype(class)
		}
		v.DatatypeBytes = datatypeBytes(v.Datatype)
		return newExplained(lib, &v, m.Explain(lib, v, categories))
	}
	for _, lib := range q.libraries {
		var own []Explained
		for _, class := range q.classes {
			e := one(lib, class)
			if len(q.libraries) > 1 && lib.Name != "" {
				if general := one(mapping.Library{}, class); slices.Equal(e.Decisions, general.Decisions) {
					continue
				}
			}
			own = append(own, e)
		}
		if len(q.classes) > 1 && slices.ContainsFunc(own, Explained.ruled) {
			own = slices.DeleteFunc(own, func(e Explained) bool { return !e.ruled() })
		}
		list = append(list, own...)
	}
	if len(q.classes) > 1 {
		known := slices.DeleteFunc(slices.Clone(list), func(e Explained) bool { return !e.named })
		if len(known) > 0 {
			return known, len(list) - len(known)
		}
	}
	return list, 0
}

// ruled says whether a rule has decided anything, or would if more were known.
func (e Explained) ruled() bool {
	return len(e.Unsure) > 0 && e.Library != "" || slices.ContainsFunc(e.Decisions,
		func(d Reason) bool { return d.Rule != "" })
}

func newExplained(lib mapping.Library, v *mpit.Variable, from mapping.Explanation) Explained {
	e := Explained{
		Library: lib.Name, Version: lib.Version, Class: classWords[v.Class], Datatype: v.Datatype.String(),
		Dropped: string(from.Drop), Series: append([]string{}, from.Series...), Decisions: []Reason{},
	}
	if metric := from.Metric; metric != nil {
		e.Metric = &Metric{metric.Name, metric.Kind.String(), metric.Unit, metric.Help, metric.OTelName}
	}
	for _, d := range from.Decisions {
		reason := Reason{Property: d.Property, Value: d.Value, Agent: d.Agent}
		if d.Rule != nil {
			reason.Rule = cmp.Or(sourceText(d.Rule.Source), "a rule")
			e.named = e.named || d.Rule.Match.Name != "" || d.Rule.Match.Regexp != ""
		}
		e.Decisions = append(e.Decisions, reason)
	}
	for _, source := range from.Unsure {
		e.Unsure = append(e.Unsure, sourceText(source))
	}
	return e
}

func sourceText(s mapping.Source) string {
	if s.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// fewExplained is how many explanations are shown whole; of more, a line each.
const fewExplained = 4

// writeExplained says of how many others it says nothing: they are not known by this name.
func writeExplained(w io.Writer, name string, list []Explained, others int) error {
	if others > 0 {
		defer func() {
			fmt.Fprintf(w, "\nNo rule asks for this name in other libraries and classes; --library and --class show "+
				"what it would become there.\n")
		}()
	}
	if len(list) > fewExplained {
		return writeBriefly(w, name, list)
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := list[i].write(w, name, list[i].in(list[0].Library != "")); err != nil {
			return err
		}
	}
	return nil
}

// in says of which library an explanation is, where others stand before it or not.
func (e *Explained) in(others bool) string {
	switch {
	case e.Library == "" && others:
		return "any other library"
	case e.Library == "":
		return "any library"
	case e.Version == "":
		return e.Library + ", whatever version"
	}
	return e.Library + " " + e.Version
}

// write shows an explanation whole. Series come one in a line, as they stand on the page.
func (e *Explained) write(w io.Writer, name, library string) error {
	fmt.Fprintf(w, "%s of class %s, %s, in %s\n\n", table.Clean(name), strings.ToUpper(e.Class), e.Datatype, library)
	if e.Metric == nil {
		fmt.Fprintf(w, "It is left out (%s).\n", cmp.Or(e.Dropped, "not known why"))
	} else {
		fmt.Fprintf(w, "%s, a %s. %s\n", e.Metric.Name, e.Metric.Type, table.Clean(e.Metric.Help))
		for _, series := range e.Series {
			fmt.Fprintf(w, "    %s\n", table.Clean(series))
		}
	}
	fmt.Fprintln(w)
	t := table.New(w)
	table.Row(t, "PROPERTY", "DECIDED BY", "VALUE")
	for _, d := range e.Decisions {
		// Of what is no histogram, what only histograms have says nothing, unless somebody has meant it to; of what
		// is left out defaults but the class say nothing.
		meant := d.Rule != "" || e.Metric != nil && e.Metric.Type == mapping.KindHistogram.String() ||
			e.Metric != nil && d.Property != "buckets" && d.Property != "companion"
		by := "default"
		if d.Agent {
			by = "the agent"
		}
		if meant || d.Property == "class" {
			table.Row(t, d.Property, cmp.Or(d.Rule, by), d.Value)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(e.Unsure) > 0 {
		fmt.Fprintf(w, "\nThese rules may decide something, too; it depends on version, verbosity or category%s:\n",
			e.orLibrary())
		for _, source := range e.Unsure {
			fmt.Fprintf(w, "    %s\n", source)
		}
	}
	return nil
}

func (e *Explained) orLibrary() string {
	if e.Library == "" {
		return ", or on the library"
	}
	return ""
}

// writeBriefly shows a line for each explanation.
func writeBriefly(w io.Writer, name string, list []Explained) error {
	fmt.Fprintf(w, "%s becomes (more with --class and --library):\n\n", table.Clean(name))
	t := table.New(w)
	table.Row(t, "LIBRARY", "CLASS", "METRIC", "TYPE", "DECIDED BY")
	for i := range list {
		e := &list[i]
		metric, kind := "none ("+e.Dropped+")", ""
		if e.Metric != nil {
			metric, kind = e.Metric.Name, e.Metric.Type
		}
		var rules []string
		for _, d := range e.Decisions {
			if d.Rule != "" && !slices.Contains(rules, d.Rule) {
				rules = append(rules, d.Rule)
			}
		}
		if e.Library != "" {
			for _, source := range e.Unsure {
				if !slices.Contains(rules, source) {
					rules = append(rules, source+" (unsure)")
				}
			}
		}
		table.Row(t, cmp.Or(e.Library, "any other"), e.Class, metric, kind,
			cmp.Or(strings.Join(rules, " "), "defaults"))
	}
	return t.Flush()
}
