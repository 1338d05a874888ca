package node

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpguts"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cmdtest"
)

// parseOTLPFlags is what a command makes of its arguments.
func parseOTLPFlags(t *testing.T, always bool, args ...string) *OTLPFlags {
	t.Helper()
	app := kingpin.New("test", "")
	f := AddOTLPFlags(app.Command("do", ""), always)
	_, err := app.Parse(append([]string{"do"}, args...))
	require.NoError(t, err)
	return f
}

// TestOTLPIsAskedFor: off, unless a flag or the environment asks; --no-otlp has the last word.
func TestOTLPIsAskedFor(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, test := range []struct {
		name  string
		env   string // endpoint
		args  []string
		asked bool
	}{
		{"nobody asks", "", nil, false},
		{"a flag", "", []string{"--otlp"}, true},
		{"another flag", "", []string{"--otlp.endpoint=http://here:4318"}, true},
		{"an interval", "", []string{"--otlp.interval=5s"}, true},
		{"a header", "", []string{"--otlp.header=a=b"}, true},
		{"the last values", "", []string{"--otlp.final"}, true},
		{"the environment", "http://here:4318", nil, true},
		{"the environment, but not here", "http://here:4318", []string{"--no-otlp"}, false},
		{"flags, but not here", "", []string{"--no-otlp", "--otlp.endpoint=http://here:4318"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmdtest.WithoutOTLP(t)
			t.Setenv(endpoint, test.env)
			assert.Equal(t, test.asked, parseOTLPFlags(t, false, test.args...).Asked())
		})
	}
	cmdtest.WithoutOTLP(t)
	assert.True(t, parseOTLPFlags(t, true).Asked(), "a command that does nothing else")
}

func TestParseHeader(t *testing.T) {
	for _, test := range []struct{ text, name, value, err string }{
		{"authorization=Bearer abc=", "authorization", "Bearer abc=", ""},
		{"X-Scope-OrgID = team 1 ", "x-scope-orgid", "team 1", ""},
		{"empty=", "empty", "", ""},
		{"Authorization: Bearer abc", "", "", "a name and a value are needed, NAME=VALUE"},
		{"=secret", "", "", "the name must consist of letters, digits and hyphens, as in authorization=Bearer…"},
		{"two words=secret", "", "", "the name must consist of letters, digits and hyphens, as in " +
			"authorization=Bearer…"},
		{"a=sec\x01ret", "", "", "the value of a has a control character"},
	} {
		name, value, err := parseHeader(test.text)
		if test.err != "" {
			assert.EqualError(t, err, test.err, test.text)
			continue
		}
		assert.NoError(t, err, test.text)
		assert.Equal(t, [2]string{test.name, test.value}, [2]string{name, value})
	}
}

// TestHeaderFile: what stands in it never stands in a log or an error, and a file that others can read is complained
// about.
func TestHeaderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headers")
	write := func(text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
	}
	read := func(args ...string) (headers map[string]string, log string, err error) {
		var lines bytes.Buffer
		f := parseOTLPFlags(t, false, append([]string{"--otlp.header-file=" + path}, args...)...)
		headers, err = f.allHeaders(slog.New(slog.NewTextHandler(&lines, nil)))
		return headers, lines.String(), err
	}

	_, _, err := read()
	assert.EqualError(t, err, "--otlp.header-file "+path+": no such file or directory")

	write("# who we are\n\nAuthorization=Bearer s3cret\n team = a \n", 0o600)
	headers, log, err := read("--otlp.header=team=b")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"authorization": "Bearer s3cret", "team": "b"}, headers)
	assert.Empty(t, log)

	write("a=s3cret\n", 0o644)
	_, log, err = read()
	require.NoError(t, err)
	assert.Contains(t, log, "Every user of the node can read the file")
	assert.NotContains(t, log, "s3cret")

	write("a=b\nAuthorization: Bearer s3cret\n", 0o600)
	_, _, err = read()
	assert.EqualError(t, err, "--otlp.header-file "+path+": line 2: a name and a value are needed, NAME=VALUE")
}

// FuzzHeaders: whatever stands in a file, what comes of it are names and values that HTTP can carry, and no error has
// any of the text.
func FuzzHeaders(f *testing.F) {
	f.Add("authorization=Bearer s3cret\n# no header\n\nteam = a\n")
	f.Add("Authorization: Bearer s3cret")
	f.Add("=\x00\na=\x7f")
	f.Fuzz(func(t *testing.T, text string) {
		headers := map[string]string{}
		err := parseHeaders(strings.NewReader(text), headers)
		for name, value := range headers {
			assert.True(t, httpguts.ValidHeaderFieldName(name), "%q", name)
			assert.True(t, httpguts.ValidHeaderFieldValue(value), "%q", value)
			assert.Equal(t, strings.ToLower(name), name)
		}
		if err != nil {
			assert.Regexp(t,
				`^line [0-9]+: (a name and a value are needed|the name must consist of|the value of [A-Za-z0-9._-]+ has a control character$)|^bufio.Scanner: token too long$`, err.Error())
		}
	})
}
