package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// explainCommand says what a performance variable becomes, and which rules decide it. The answers are
// variables.Mapper's.
type explainCommand struct {
	name                             string
	class, bind, verbosity, datatype string
	library                          mapping.Library
	files                            []string
}

func newExplainCommand(config *kingpin.CmdClause, do commands) {
	x := &explainCommand{}
	cmd := config.Command("explain", "Say what a performance variable becomes, and which rules decide it.")
	do["config explain"] = x.run
	cmd.HelpLong("mpit-exporter config explain pml_ob1_unexpected_msgq_length --class=SIZE\n" +
		"mpit-exporter config explain NAME --class=COUNTER --config.file=rules.yaml")
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
	cmd.Flag("config.file", node.ConfigFileHelp).PlaceHolder("PATH").StringsVar(&x.files)
}

func wordsOf[T ~uint8](first, last T, word func(T) string) (words []string) {
	for v := first; v <= last; v++ {
		words = append(words, word(v))
	}
	return words
}

// variable is the one that the flags describe.
func (x *explainCommand) variable() (v mpit.Variable, err error) {
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

// run answers the question that the flags put.
func (x *explainCommand) run(_ context.Context, std cli.Stdio) error {
	v, err := x.variable()
	if err != nil {
		return err
	}
	from, _, err := node.LoadRules("config explain: --config.file", x.files, 0)
	if err != nil {
		return err
	}
	if err := x.write(std.Out, from.Mapper, v); err != nil {
		return fmt.Errorf("config explain: writing: %w", err)
	}
	return nil
}

// write says what becomes of a variable.
func (x *explainCommand) write(w io.Writer, mapper *variables.Mapper, v mpit.Variable) error {
	fmt.Fprintf(w, "%s of class %s, %s\n\n", mapping.OneLine(x.name), strings.ToUpper(x.class), v.Datatype)
	if metric, reason, ok := mapper.Metric(x.library, v); ok {
		fmt.Fprintf(w, "%s, a %s. %s\nOver OTLP it is %s.\n\n", metric.Name, metric.Kind, mapping.OneLine(metric.Help),
			metric.OTelName)
	} else {
		fmt.Fprintf(w, "It is left out (%s).\n\n", reason)
	}
	decisions, unsure := mapper.Explain(x.library, v)
	var rows [][]string
	for _, d := range decisions {
		rows = append(rows, table.Clean(d.Property, d.By, d.Value))
	}
	rows = append(rows, table.Clean("all else", "its class", ""))
	if err := table.Write(w, []string{"PROPERTY", "DECIDED BY", "VALUE"}, rows); err != nil {
		return err
	}
	if len(unsure) > 0 {
		fmt.Fprint(w, "\nThese rules may decide something, too; it depends on library, version or verbosity:\n")
	}
	for _, source := range unsure {
		fmt.Fprintf(w, "    %s\n", source)
	}
	return nil
}
