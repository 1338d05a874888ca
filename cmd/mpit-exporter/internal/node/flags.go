package node

import (
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

// ConfigFileHelp is the help of the flag --config.file, which several commands have.
const ConfigFileHelp = "File with rules that say what variables become, or directory with such files (*.yaml, " +
	"*.yml); repeatable. The first rule that matches and sets a property wins; the shipped rules come last."

// Flags are those of every command that is an exporter, however its figures leave it.
type Flags struct {
	configFiles []string
	landlock    bool

	Socket                   string
	Control                  string
	controlNamed             bool // an empty path means none
	retention, timerInterval time.Duration
	cvars                    []string
	cvarInterval             time.Duration

	OTLP *OTLPFlags

	log promslog.Config
}

// AddFlags adds them to a command, with those of OTLP; always: it is a command that does nothing but push.
func AddFlags(cmd *kingpin.CmdClause, always bool) *Flags {
	f := &Flags{OTLP: AddOTLPFlags(cmd, always), log: promslog.Config{Level: promslog.NewLevel(),
		Format: promslog.NewFormat()}}
	cmd.Flag("config.file", ConfigFileHelp+" SIGHUP reads them anew.").PlaceHolder("PATH").
		StringsVar(&f.configFiles)
	cmd.Flag("landlock", "Let the kernel refuse whatever this process has no business with in the file system, once "+
		"it serves: it reads its configuration and /proc and makes its sockets (docs/security.md). Where the kernel "+
		"can't, the log says so.").Default("true").BoolVar(&f.landlock)
	cmd.Flag("agent.socket", "Unix socket that the ranks connect to (default: /run/mpit-exporter/agent.sock, or "+
		"$XDG_RUNTIME_DIR/mpit-exporter/agent.sock where /run can't be written). Ranks need MPIT_SOCKET for any "+
		"other.").PlaceHolder("PATH").StringVar(&f.Socket)
	cmd.Flag("control.socket", "Unix socket on which mpit-exporter cvar sets control variables and push --once asks "+
		"for a push (default: control.sock beside the agent socket; empty: none). Every user may connect; the "+
		"kernel says who it is, and root or the job's owner may write where the job allows it.").
		PlaceHolder("PATH").IsSetByUser(&f.controlNamed).StringVar(&f.Control)
	cmd.Flag("retention", "How long the last values of an ended rank are kept at least; longer, until they have "+
		"been scraped, and pushed.").Default("2m").DurationVar(&f.retention)
	cmd.Flag("timer-interval", "Shortest interval that makes an event in the histogram of a timer.").
		Default("10s").DurationVar(&f.timerInterval)
	cmd.Flag("cvar.name", "Control variables that stand on mpit_cvar_ranks, by name; * and ? stand for any "+
		"characters. Repeatable.").PlaceHolder("GLOB").StringsVar(&f.cvars)
	cmd.Flag("cvar.interval", "How often their values are read again, at scrapes.").Default("5m").
		DurationVar(&f.cvarInterval)
	cmd.Flag(promslogflag.LevelFlagName, promslogflag.LevelFlagHelp).Default("info").
		HintOptions(promslog.LevelFlagOptions...).SetValue(f.log.Level)
	cmd.Flag(promslogflag.FormatFlagName, promslogflag.FormatFlagHelp).Default("logfmt").
		HintOptions(promslog.FormatFlagOptions...).SetValue(f.log.Format)
	return f
}

// Check finds what the flag parser can't.
func (f *Flags) Check() error {
	switch {
	case f.retention < 0:
		return cli.Usagef("--retention %s: must not be negative", f.retention)
	case f.timerInterval <= 0:
		return cli.Usagef("--timer-interval %s: must be more than nothing, such as 10s", f.timerInterval)
	case f.cvarInterval <= 0:
		return cli.Usagef("--cvar.interval %s: must be more than nothing, such as 5m", f.cvarInterval)
	case slices.Contains(f.cvars, ""):
		return cli.Usagef("--cvar.name: must not be empty")
	}
	return f.OTLP.Check()
}
