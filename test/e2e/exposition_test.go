package e2e

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A page with live, ended and lost ranks of both MPIs passes the two checkers that Prometheus has.
func TestExpositionIsClean(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	var held []*harness.Run
	for _, mpi := range harness.Both(t) {
		run := suite.Run(t, harness.Job{
			MPI: mpi, Program: "traffic.c", Args: []string{"5", "100", harness.HoldDir},
			Socket: exporter.Socket, Exec: monitoring(mpi),
		})
		run.AtHold(t, "ready")
		run.Release(t, "ready")
		run.AtHold(t, "half")
		held = append(held, run)
		lost := suite.Run(t, harness.Job{MPI: mpi, Program: "ends.c", Args: []string{"kill", harness.HoldDir},
			Socket: exporter.Socket})
		lost.AtHold(t, "up")
		exporter.Await(t, "ranks that will be lost", up(lost))
		lost.Release(t, "up")
		lost.Wait(t)
		exporter.Await(t, "live and lost ranks", all(up(run), ended(lost, "lost", 0)))
	}
	body := exporter.Scrape(t).Body

	problems, err := promlint.New(bytes.NewReader(body)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)

	promtool := exec.CommandContext(t.Context(), harness.Tool(t, "promtool"), "check", "metrics")
	promtool.Stdin = bytes.NewReader(body)
	out, err := promtool.CombinedOutput()
	assert.NoError(t, err, "promtool check metrics:\n%s", out)

	for _, run := range held {
		run.Finish(t, "half", "done")
	}
}

// The three formats that Prometheus asks for show the same series with the same values.
func TestFormatsAgree(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "traffic.c", Args: []string{"5", "100", "-"},
		Socket: exporter.Socket, Exec: []string{"--monitoring"},
	})
	run.Finish(t)
	want := seriesOf(exporter.Await(t, "the ended job", ended(run, "finalize")), run)
	require.Greater(t, len(want), 20)

	t.Run("protobuf", func(t *testing.T) {
		body, contentType := exporter.Get(t, "/metrics",
			"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
		require.True(t, strings.HasPrefix(contentType, "application/vnd.google.protobuf"), contentType)
		scrape := &harness.Scrape{Families: map[string]*dto.MetricFamily{}}
		decoder := expfmt.NewDecoder(bytes.NewReader(body), expfmt.NewFormat(expfmt.TypeProtoDelim))
		for {
			family := &dto.MetricFamily{}
			if decoder.Decode(family) != nil {
				break
			}
			scrape.Families[family.GetName()] = family
		}
		assert.Equal(t, want, seriesOf(scrape, run))

		created := 0
		for _, series := range scrape.Select(allToAllCalls, run.Labels(0)) {
			if series.Metric.Counter.GetCreatedTimestamp() != nil {
				created++
			}
		}
		assert.Positive(t, created, "no created timestamps")
	})
	t.Run("OpenMetrics", func(t *testing.T) {
		body, contentType := exporter.Get(t, "/metrics", "application/openmetrics-text;version=1.0.0")
		require.True(t, strings.HasPrefix(contentType, "application/openmetrics-text"), contentType)
		require.True(t, bytes.HasSuffix(body, []byte("# EOF\n")))
		for _, line := range strings.Split(string(body), "\n") {
			name, _, _ := strings.Cut(line, "{") // a variable of Open MPI 6 ends in _created: in a label
			assert.NotContains(t, name, "_created")
		}
		// What differs from the old format are comments; without them its parser reads the lines as untyped.
		scrape, err := harness.ParseText(withoutComments(body))
		require.NoError(t, err)
		assert.NoError(t, counted(run, allToAllCalls, "sums", always(10))(scrape))
		assert.NoError(t, ended(run, "finalize")(scrape))
	})
}

func seriesOf(scrape *harness.Scrape, run *harness.Run) map[string]float64 {
	values := map[string]float64{}
	for _, name := range scrape.Names("mpit_") {
		for _, series := range scrape.Select(name, harness.Labels{"jobid": run.ID}) {
			values[series.String()] = series.Value
		}
	}
	return values
}

func withoutComments(body []byte) []byte {
	var lines []byte
	for _, line := range bytes.SplitAfter(body, []byte("\n")) {
		if !bytes.HasPrefix(line, []byte("#")) {
			lines = append(lines, line...)
		}
	}
	return lines
}
