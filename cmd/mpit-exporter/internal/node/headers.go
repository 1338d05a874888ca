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
	"strings"

	"golang.org/x/net/http/httpguts"
)

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
