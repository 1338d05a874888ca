package job

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Read reads a report, as JSON or from a page that has it as JSON.
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
