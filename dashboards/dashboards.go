// Package dashboards holds Grafana's dashboards for the exporter's metrics: the JSON files beside it, and the Go code
// that writes them. Nothing of it is in the exporter's binary. docs/dashboards.md says what each dashboard is for.
//
// Each dashboard is a file of this package: its rows, their panels, the panels' queries. board.go and panel.go make
// Grafana's model of it (internal/grafana), query.go has what queries are made of.
package dashboards

//go:generate go run ./internal/generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
)

// The dashboards' uids, which links name. They never change: an import replaces the dashboard that has the same one.
const (
	uidJobs      = "mpit-jobs"
	uidJob       = "mpit-job"
	uidVariables = "mpit-variables"
	uidCalls     = "mpit-calls"
	uidExporter  = "mpit-exporter"
)

// files are the dashboards by the names of their files.
func files() map[string]grafana.Dashboard {
	return map[string]grafana.Dashboard{
		"mpi-jobs.json":  jobs(),
		"one-job.json":   oneJob(),
		"variables.json": variables(),
		"mpi-calls.json": callProfile(),
		"exporter.json":  exporter(),
	}
}

// Write writes all dashboards into a directory, over those that are there.
func Write(dir string) error {
	for name, d := range files() {
		text, err := encode(d)
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		//nolint:gosec // for everybody to read, as the rest of the repository
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("writing a dashboard: %w", err)
		}
	}
	return nil
}

// encode is a dashboard as it stands in its file: queries stay readable.
func encode(d grafana.Dashboard) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
