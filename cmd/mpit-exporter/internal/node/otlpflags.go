package node

import (
	"log/slog"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/exporter/otlp"
)

// OTLPFlags are those of every command that may push. Headers, certificates and what else is set rarely are
// OpenTelemetry's variables alone.
type OTLPFlags struct {
	always bool // the command does nothing else: no flag is needed to switch it on

	on, onNamed bool // --otlp or --no-otlp

	config                       otlp.Config // of flags alone
	endpointNamed, intervalNamed bool
}

// AddOTLPFlags adds them to a command; always: one that does nothing but push.
func AddOTLPFlags(cmd *kingpin.CmdClause, always bool) *OTLPFlags {
	f := &OTLPFlags{always: always}
	c := &f.config
	if !always {
		cmd.Flag("otlp", "Push to a receiver of OpenTelemetry's protocol as well (docs/otlp.md), at the "+
			"environment's or the default endpoint. Any other flag of OTLP, OTEL_EXPORTER_OTLP_ENDPOINT or "+
			"OTEL_METRICS_EXPORTER=otlp in the environment do so, too; --no-otlp switches it off whatever they say.").
			IsSetByUser(&f.onNamed).BoolVar(&f.on)
	}
	cmd.Flag("otlp.endpoint", "URL of the receiver, such as http://localhost:4318 or, for gRPC, "+
		"https://collector:4317 (default: of the environment, else this machine's).").
		PlaceHolder("URL").IsSetByUser(&f.endpointNamed).StringVar(&c.Endpoint)
	cmd.Flag("otlp.protocol", "http/protobuf or grpc (default: http/protobuf).").
		PlaceHolder("PROTOCOL").EnumVar(&c.Protocol, otlp.ProtocolHTTP, otlp.ProtocolGRPC)
	cmd.Flag("otlp.interval", "How often figures are pushed (default: 60s).").
		PlaceHolder("60s").IsSetByUser(&f.intervalNamed).DurationVar(&c.Interval)
	cmd.Flag("otlp.final", "Push when ranks have ended, too, at most once a second: of use with short jobs.").
		BoolVar(&c.Final)
	return f
}

// Named says whether any flag but --otlp itself was given.
func (f *OTLPFlags) Named() bool {
	c := &f.config
	return f.endpointNamed || f.intervalNamed || c.Protocol != "" || c.Final
}

// Asked says whether anything is to be pushed.
func (f *OTLPFlags) Asked() bool {
	switch {
	case f.always:
		return true
	case f.onNamed:
		return f.on
	}
	return f.Named() || otlp.Asked(os.Getenv)
}

// Check finds what the flag parser can't.
func (f *OTLPFlags) Check() error {
	switch {
	case f.endpointNamed && f.config.Endpoint == "": // a variable of the shell that is not set, most likely
		return cli.Usagef("--otlp.endpoint: a URL is needed, such as http://collector:4318")
	case f.intervalNamed && f.config.Interval <= 0:
		return cli.Usagef("--otlp.interval %s: must be more than nothing, such as 60s", f.config.Interval)
	}
	return nil
}

// complete is what the flags say, for an exporter of a version. instance tells it from the node's exporter.
func (f *OTLPFlags) complete(instance, version string, logger *slog.Logger) otlp.Config {
	config := f.config
	config.Version, config.Instance, config.Logger, config.Prefix = version, instance, logger, "--otlp."
	return config
}
