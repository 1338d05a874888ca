package node

import (
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		{"a protocol", "", []string{"--otlp.protocol=grpc"}, true},
		{"the last values", "", []string{"--otlp.final"}, true},
		{"the environment", "http://here:4318", nil, true},
		{"the environment, but not here", "http://here:4318", []string{"--no-otlp"}, false},
		{"flags, but not here", "", []string{"--no-otlp", "--otlp.endpoint=http://here:4318"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			withoutOTLP(t)
			t.Setenv(endpoint, test.env)
			assert.Equal(t, test.asked, parseOTLPFlags(t, false, test.args...).Asked())
		})
	}
	withoutOTLP(t)
	assert.True(t, parseOTLPFlags(t, true).Asked(), "a command that does nothing else")
}
