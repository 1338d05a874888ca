package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	if err := cli.WriteJSON(w, r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Read reads a report that JSON or HTML has written.
func Read(text []byte) (*Report, error) {
	const begin, end = `<script type="application/json" id="report">`, `</script>`
	if _, after, is := bytes.Cut(text, []byte(begin)); is {
		text, _, _ = bytes.Cut(after, []byte(end))
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("this is no report, neither as JSON nor as a page: %w", err)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("this is a report of format %d; this version reads %d", r.Format, Format)
	}
	return r, nil
}
