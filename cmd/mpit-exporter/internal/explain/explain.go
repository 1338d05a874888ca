// Package explain is config explain: what a performance variable becomes, and which rules decide it, as text and as
// JSON.
//
// The answers are variables.Mapper's. Here are the question, as flags put it (Flags), and how the answer is written.
package explain

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/configuration"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Flags is what config explain is told of a variable.
type Flags struct {
	name                             string
	class, bind, verbosity, datatype string
	library                          mapping.Library
	files                            []string
	output                           string
}

// AddTo adds the flags and arguments to a command.
func (x *Flags) AddTo(cmd *kingpin.CmdClause) {
	cmd.Arg("pvar", "Name of the performance variable.").Required().StringVar(&x.name)
	words := func(flag, help, placeholder string, into *string, known []string) *kingpin.FlagClause {
		f := cmd.Flag(flag, help).PlaceHolder(placeholder)
		f.EnumVar(into, known...)
		return f
	}
	words("class", "Its class, as the library declares it: state, level, size, …", "CLASS", &x.class,
		wordsOf(mpit.ClassState, mpit.ClassGeneric, mapping.NameOf)).Required()
	words("library", "MPI library: "+strings.Join(rules.Libraries(), ", ")+". Without it, rules for certain "+
		"libraries are named as unsure.", "NAME", &x.library.Name, rules.Libraries())
	cmd.Flag("library-version", "Version of the library, such as 4.1.4. Without it, rules for certain versions are "+
		"named as unsure.").PlaceHolder("V").StringVar(&x.library.Version)
	words("bind", "Kind of object that it is bound to: comm, win, file, …, or none, the default.", "KIND", &x.bind,
		append(wordsOf(mpit.BindComm, mpit.BindLast, mpit.Bind.Label), "none")).Default("none")
	words("verbosity", "Its verbosity: user_basic … mpidev_all. Without it, rules that match by verbosity are named "+
		"as unsure.", "V", &x.verbosity, wordsOf(mpit.VerbosityUserBasic, mpit.VerbosityMPIDevAll,
		func(v mpit.Verbosity) string { return strings.ToLower(v.String()) }))
	words("datatype", "Its datatype, such as unsigned_long or double (default: a usual one of the class).", "TYPE",
		&x.datatype, wordsOf(mpit.DatatypeInt, mpit.DatatypeBool,
			func(d mpit.Datatype) string { return strings.ToLower(strings.TrimPrefix(d.String(), "MPI_")) }))
	cmd.Flag("config.file", configuration.FileHelp).PlaceHolder("PATH").StringsVar(&x.files)
	cmd.Flag("output", "text or json.").Short('o').Default("text").EnumVar(&x.output, "text", "json")
}

func wordsOf[T ~uint8](first, last T, word func(T) string) (words []string) {
	for v := first; v <= last; v++ {
		words = append(words, word(v))
	}
	return words
}

// variable is the one that the flags describe.
func (x *Flags) variable() (v mpit.Variable, err error) {
	switch version := x.library.Version; {
	case x.name == "":
		return v, cli.Usagef("config explain: the name of a performance variable is needed")
	case strings.ContainsAny(x.name, "*?"):
		return v, cli.Usagef("config explain: %q: the name of one variable is needed, without * and ?; "+
			"mpit-exporter list shows what there is", x.name)
	case version != "" && (version[0] < '0' || version[0] > '9'):
		return v, cli.Usagef("config explain: --library-version %q: a version such as 4.1.4 is needed", version)
	}
	v = mpit.Variable{Name: x.name, Datatype: mpit.DatatypeUnsignedLongLong}
	v.Bind, _ = mpit.BindOfLabel(x.bind) // none is BindNone
	err = v.Class.UnmarshalText([]byte(x.class))
	if x.verbosity != "" {
		err = errors.Join(err, v.Verbosity.UnmarshalText([]byte(x.verbosity)))
	}
	switch {
	case x.datatype != "":
		err = errors.Join(err, v.Datatype.UnmarshalText([]byte(x.datatype)))
	case v.Class == mpit.ClassTimer && strings.HasPrefix(v.Name, "mpit_call_time_"),
		v.Class == mpit.ClassAggregate && strings.HasPrefix(v.Name, "mpit_call_size_"): // the agent's own
		v.Datatype, v.Distribution = mpit.DatatypeUint64, true
	case v.Class == mpit.ClassState:
		v.Datatype = mpit.DatatypeInt
	case v.Class == mpit.ClassPercentage, v.Class == mpit.ClassTimer:
		v.Datatype = mpit.DatatypeDouble
	}
	return v, err
}

// Answer is what becomes of a variable.
type Answer struct {
	Name      string           `json:"name"`
	Class     string           `json:"class"`
	Datatype  string           `json:"datatype"`
	Metric    *Metric          `json:"metric,omitempty"`
	Dropped   string           `json:"dropped,omitempty"` // why there is no metric
	Decisions []rules.Decision `json:"decisions,omitempty"`
	Unsure    []string         `json:"unsure,omitempty"` // rules, by file and line
}

// Metric is the metric that a variable becomes.
type Metric struct {
	Name          string `json:"name"`
	Type          string `json:"type"`
	Unit          string `json:"unit,omitempty"`
	Help          string `json:"help"`
	OpenTelemetry string `json:"opentelemetry"`
}

// Run answers the question that the flags put.
func (x *Flags) Run(std cli.Stdio) error {
	v, err := x.variable()
	if err != nil {
		return err
	}
	if err := configuration.CheckPaths("config explain: --config.file", x.files); err != nil {
		return err
	}
	from, _, err := configuration.Load(x.files, 0)
	if err != nil {
		return err
	}
	a := Answer{Name: x.name, Class: x.class, Datatype: v.Datatype.String()}
	metric, reason, ok := from.Mapper.Metric(x.library, v)
	if a.Dropped = string(reason); ok {
		a.Metric = &Metric{metric.Name, metric.Kind.String(), metric.Unit, metric.Help, metric.OTelName}
	}
	a.Decisions, a.Unsure = from.Mapper.Explain(x.library, v)
	if x.output == "json" {
		err = cli.WriteJSON(std.Out, a)
	} else {
		err = a.write(std.Out)
	}
	if err != nil {
		return fmt.Errorf("config explain: writing: %w", err)
	}
	return nil
}

// write shows the answer as text.
func (a *Answer) write(w io.Writer) error {
	fmt.Fprintf(w, "%s of class %s, %s\n\n", mapping.OneLine(a.Name), strings.ToUpper(a.Class), a.Datatype)
	if a.Metric == nil {
		fmt.Fprintf(w, "It is left out (%s).\n\n", a.Dropped)
	} else {
		fmt.Fprintf(w, "%s, a %s. %s\n\n", a.Metric.Name, a.Metric.Type, mapping.OneLine(a.Metric.Help))
	}
	t := table.New(w)
	table.Row(t, "PROPERTY", "DECIDED BY", "VALUE")
	for _, d := range a.Decisions {
		table.Row(t, d.Property, d.By, d.Value)
	}
	table.Row(t, "all else", "its class", "")
	if err := t.Flush(); err != nil {
		return err
	}
	if len(a.Unsure) > 0 {
		fmt.Fprint(w, "\nThese rules may decide something, too; it depends on library, version or verbosity:\n")
	}
	for _, source := range a.Unsure {
		fmt.Fprintf(w, "    %s\n", source)
	}
	return nil
}
