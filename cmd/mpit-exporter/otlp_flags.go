package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp"
)

// otlpFlags are those of every command that may push.
type otlpFlags struct {
	always bool // the command does nothing else: no flag is needed to switch it on

	on, onNamed bool // --otlp or --no-otlp

	endpoint, protocol, compression                       string
	endpointNamed                                         bool
	interval, timeout, pushTimeout                        time.Duration
	intervalNamed, timeoutNamed, pushNamed                bool
	temporality, histogram                                string
	headers                                               []string
	headerFile, authorities, clientCertificate, clientKey string
	insecure, final                                       bool
}

func addOTLPFlags(cmd *kingpin.CmdClause, always bool) *otlpFlags {
	f := &otlpFlags{always: always}
	if !always {
		cmd.Flag("otlp", "Push to a receiver of OpenTelemetry's protocol as well (docs/otlp.md), at the environment's or the default endpoint. Any other flag of OTLP, "+
			"OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_METRICS_EXPORTER=otlp in the environment do so, too; --no-otlp switches it off whatever they say.").
			IsSetByUser(&f.onNamed).BoolVar(&f.on)
	}
	cmd.Flag("otlp.endpoint", "URL of the receiver, such as http://localhost:4318 or, for gRPC, https://collector:4317 (default: of the environment, else this machine's).").
		PlaceHolder("URL").IsSetByUser(&f.endpointNamed).StringVar(&f.endpoint)
	cmd.Flag("otlp.protocol", "http/protobuf or grpc (default: http/protobuf).").PlaceHolder("PROTOCOL").EnumVar(&f.protocol, otlp.ProtocolHTTP, otlp.ProtocolGRPC)
	cmd.Flag("otlp.interval", "How often figures are pushed (default: 60s).").PlaceHolder("60s").IsSetByUser(&f.intervalNamed).DurationVar(&f.interval)
	cmd.Flag("otlp.timeout", "How long one message may take with its repetitions, and the last push when the exporter ends (default: 10s).").
		PlaceHolder("10s").IsSetByUser(&f.timeoutNamed).DurationVar(&f.timeout)
	cmd.Flag("otlp.push-timeout", "How long a push may take: to ask the ranks, and all messages (default: 30s).").
		PlaceHolder("30s").IsSetByUser(&f.pushNamed).DurationVar(&f.pushTimeout)
	cmd.Flag("otlp.temporality", "What counts is pushed as totals since its start (cumulative), as what has been added since the last push that arrived (delta), or so for "+
		"histograms alone (lowmemory) (default: cumulative).").PlaceHolder("WHICH").EnumVar(&f.temporality, otlp.TemporalityCumulative, otlp.TemporalityDelta, otlp.TemporalityLowMemory)
	cmd.Flag("otlp.histogram", "What timers are pushed as: histograms with explicit or with exponential buckets (default: explicit).").
		PlaceHolder("KIND").EnumVar(&f.histogram, otlp.HistogramExplicit, otlp.HistogramExponential)
	cmd.Flag("otlp.header", "Header that is sent with each push. Repeatable. Every user of the node can read a command line: a secret belongs into --otlp.header-file or "+
		"the environment.").PlaceHolder("NAME=VALUE").StringsVar(&f.headers)
	cmd.Flag("otlp.header-file", "File of headers, NAME=VALUE in each line, read once at the start.").PlaceHolder("FILE").StringVar(&f.headerFile)
	cmd.Flag("otlp.compression", "gzip or none (default: none).").PlaceHolder("KIND").EnumVar(&f.compression, otlp.CompressionGzip, otlp.CompressionNone)
	cmd.Flag("otlp.certificate", "File with the certificates of those who may sign the receiver's (default: the system's).").PlaceHolder("FILE").StringVar(&f.authorities)
	cmd.Flag("otlp.client-certificate", "File with the certificate that is shown to the receiver.").PlaceHolder("FILE").StringVar(&f.clientCertificate)
	cmd.Flag("otlp.client-key", "File with its key.").PlaceHolder("FILE").StringVar(&f.clientKey)
	cmd.Flag("otlp.insecure", "gRPC without TLS, where the endpoint is no URL with a scheme.").BoolVar(&f.insecure)
	cmd.Flag("otlp.final", "Push the last values of a rank when it ends, without waiting for the interval: of use with short jobs.").BoolVar(&f.final)
	return f
}

// named says whether any flag but --otlp itself was given.
func (f *otlpFlags) named() bool {
	for _, text := range []string{f.endpoint, f.protocol, f.temporality, f.histogram, f.headerFile, f.compression, f.authorities, f.clientCertificate, f.clientKey} {
		if text != "" {
			return true
		}
	}
	return len(f.headers) > 0 || f.intervalNamed || f.timeoutNamed || f.pushNamed || f.insecure || f.final
}

// asked says whether anything is to be pushed.
func (f *otlpFlags) asked() bool {
	switch {
	case f.always:
		return true
	case f.onNamed:
		return f.on
	}
	return f.named() || otlp.Asked(os.Getenv)
}

// check finds what the flag parser can't.
func (f *otlpFlags) check() error {
	switch {
	case f.endpointNamed && f.endpoint == "": // a variable of the shell that is not set, most likely
		return usageErrorf("--otlp.endpoint: a URL is needed, such as http://collector:4318")
	case f.intervalNamed && f.interval <= 0:
		return usageErrorf("--otlp.interval %s: must be more than nothing, such as 60s", f.interval)
	case f.timeoutNamed && f.timeout <= 0:
		return usageErrorf("--otlp.timeout %s: must be more than nothing, such as 10s", f.timeout)
	case f.pushNamed && f.pushTimeout <= 0:
		return usageErrorf("--otlp.push-timeout %s: must be more than nothing, such as 30s", f.pushTimeout)
	}
	for _, header := range f.headers {
		if _, _, err := parseHeader(header); err != nil {
			return usageErrorf("--otlp.header: %w", err)
		}
	}
	return nil
}

// config is what the flags and the environment say together, checked. instance is the agent socket's path.
func (f *otlpFlags) config(instance, version string, logger *slog.Logger) (otlp.Config, error) {
	headers, err := f.allHeaders(logger)
	if err != nil {
		return otlp.Config{}, err
	}
	return otlp.Config{
		Protocol: f.protocol, Endpoint: f.endpoint, Headers: headers, Compression: f.compression,
		Certificate: f.authorities, ClientCert: f.clientCertificate, ClientKey: f.clientKey, Insecure: f.insecure,
		Timeout: f.timeout, PushTimeout: f.pushTimeout, Interval: f.interval, Temporality: f.temporality, Histogram: f.histogram, Final: f.final,
		Version: version, Instance: instance, Prefix: "--otlp.", Logger: logger,
	}.Complete()
}

// allHeaders are those of the file and of the command line, which overrides it.
func (f *otlpFlags) allHeaders(logger *slog.Logger) (map[string]string, error) {
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

// readHeaders reads a file of NAME=VALUE lines. Errors have the line's number and none of its text, which may be a secret.
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
		logger.Warn("Every user of the node can read the file with the headers for OTLP; if they are secret, chmod 600 it", "path", path)
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
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "", "", fmt.Errorf("the value of %s has a control character", name)
	}
	return strings.ToLower(name), value, nil
}

// isToken says whether a name of a header may have the character, over HTTP and over gRPC.
func isToken(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}
