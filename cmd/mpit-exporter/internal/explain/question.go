package explain

import (
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/configuration"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Flags is what config explain is told of a variable.
type Flags struct {
	name                             string
	class, bind, verbosity, datatype string
	library, version                 string
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
	bindWords      = append([]string{"none"}, wordsOf(mpit.BindComm, mpit.BindLast, mpit.Bind.Label)...)
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

// place is the index of a word in a list, in any case and with or without MPI's prefixes. The error says which words
// there are.
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

// ownDistribution says whether the agent's own variable of this name and class is a distribution (docs/protocol.md).
func ownDistribution(name string, c mpit.Class) bool {
	return c == mpit.ClassTimer && strings.HasPrefix(name, "mpit_call_time_") ||
		c == mpit.ClassAggregate && strings.HasPrefix(name, "mpit_call_size_")
}

// usualDatatype is the usual datatype of a class, one of those that MPI-4.1 §15.3.7 allows.
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
