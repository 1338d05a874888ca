package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/net/http/httpguts"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/exporter/otlp"
)

// OTLPFlags are those of every command that may push.
type OTLPFlags struct {
	always bool // the command does nothing else: no flag is needed to switch it on

	on, onNamed bool // --otlp or --no-otlp

	config                                                otlp.Config // of flags alone
	endpointNamed, intervalNamed, timeoutNamed, pushNamed bool
	headers                                               []string
	headerFile                                            string
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
	cmd.Flag("otlp.timeout", "How long one message may take with its repetitions, and the last push when the "+
		"exporter ends (default: 10s).").PlaceHolder("10s").IsSetByUser(&f.timeoutNamed).DurationVar(&c.Timeout)
	cmd.Flag("otlp.push-timeout", "How long a push may take: to ask the ranks, and all messages (default: 30s).").
		PlaceHolder("30s").IsSetByUser(&f.pushNamed).DurationVar(&c.PushTimeout)
	cmd.Flag("otlp.header", "Header that is sent with each push. Repeatable. Every user of the node can read a "+
		"command line: a secret belongs into --otlp.header-file or the environment.").PlaceHolder("NAME=VALUE").
		StringsVar(&f.headers)
	cmd.Flag("otlp.header-file", "File of headers, NAME=VALUE in each line, read once at the start.").
		PlaceHolder("FILE").StringVar(&f.headerFile)
	cmd.Flag("otlp.compression", "gzip or none (default: none).").
		PlaceHolder("KIND").EnumVar(&c.Compression, otlp.CompressionGzip, otlp.CompressionNone)
	cmd.Flag("otlp.certificate", "File with the certificates of those who may sign the receiver's (default: the "+
		"system's).").PlaceHolder("FILE").StringVar(&c.Certificate)
	cmd.Flag("otlp.client-certificate", "File with the certificate that is shown to the receiver.").
		PlaceHolder("FILE").StringVar(&c.ClientCert)
	cmd.Flag("otlp.client-key", "File with its key.").PlaceHolder("FILE").StringVar(&c.ClientKey)
	cmd.Flag("otlp.insecure", "gRPC without TLS, where the endpoint is no URL with a scheme.").BoolVar(&c.Insecure)
	cmd.Flag("otlp.final", "Push when ranks have ended, too, at most once a second: of use with short jobs.").
		BoolVar(&c.Final)
	return f
}

// Named says whether any flag but --otlp itself was given.
func (f *OTLPFlags) Named() bool {
	return len(f.headers) > 0 || f.headerFile != "" || !reflect.ValueOf(f.config).IsZero()
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
	if f.endpointNamed && f.config.Endpoint == "" { // a variable of the shell that is not set, most likely
		return cli.Usagef("--otlp.endpoint: a URL is needed, such as http://collector:4318")
	}
	for _, flag := range []struct {
		name, example string
		named         bool
		value         time.Duration
	}{
		{"interval", "60s", f.intervalNamed, f.config.Interval},
		{"timeout", "10s", f.timeoutNamed, f.config.Timeout},
		{"push-timeout", "30s", f.pushNamed, f.config.PushTimeout},
	} {
		if flag.named && flag.value <= 0 {
			return cli.Usagef("--otlp.%s %s: must be more than nothing, such as %s", flag.name, flag.value,
				flag.example)
		}
	}
	for _, header := range f.headers {
		if _, _, err := parseHeader(header); err != nil {
			return cli.Usagef("--otlp.header: %w", err)
		}
	}
	return nil
}

// complete is what the flags and the environment say together, checked. instance is the agent socket's path.
func (f *OTLPFlags) complete(instance, version string, logger *slog.Logger) (otlp.Config, error) {
	headers, err := f.allHeaders(logger)
	if err != nil {
		return otlp.Config{}, err
	}
	config := f.config
	config.Headers, config.Version, config.Instance, config.Logger = headers, version, instance, logger
	config.Prefix = "--otlp."
	return config.Complete()
}

// allHeaders are those of the file and of the command line, which overrides it.
func (f *OTLPFlags) allHeaders(logger *slog.Logger) (map[string]string, error) {
	headers := map[string]string{}
	if f.headerFile != "" {
		if err := readHeaders(f.headerFile, headers, logger); err != nil {
			return nil, fmt.Errorf("--otlp.header-file %s: %w", f.headerFile, err)
		}
	}
	for _, header := range f.headers {
		name, value, err := parseHeader(header)
		if err != nil {
			return nil, err
		}
		headers[name] = value
	}
	return headers, nil
}

// maxHeaderLine is much more than any receiver takes, in bytes.
const maxHeaderLine = 64 << 10

// readHeaders reads a file of NAME=VALUE lines. Errors have the line's number and none of its text, which may be a
// secret.
func readHeaders(path string, headers map[string]string, logger *slog.Logger) error {
	file, err := os.Open(path)
	if err != nil {
		if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
			err = inner.Err // the path stands in front of it
		}
		return err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Mode().Perm()&0o004 != 0 {
		logger.Warn("Every user of the node can read the file with the headers for OTLP; if they are secret, chmod "+
			"600 it", "path", path)
	}
	return parseHeaders(file, headers)
}

func parseHeaders(text io.Reader, headers map[string]string) error {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxHeaderLine)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, value, err := parseHeader(string(line))
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		headers[name] = value
	}
	return lines.Err()
}

// parseHeader reads NAME=VALUE. Its errors have nothing of the value, which may be a secret.
func parseHeader(text string) (name, value string, err error) {
	name, value, found := strings.Cut(text, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !found:
		return "", "", errors.New("a name and a value are needed, NAME=VALUE")
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isToken(r) }):
		return "", "", errors.New("the name must consist of letters, digits and hyphens, as in authorization=Bearer…")
	case !httpguts.ValidHeaderFieldValue(value):
		return "", "", fmt.Errorf("the value of %s has a control character", name)
	}
	return strings.ToLower(name), value, nil
}

// isToken says whether a name of a header may have the character, over HTTP and over gRPC.
func isToken(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}
