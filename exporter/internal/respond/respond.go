// Package respond writes the answers of the exporter's JSON APIs.
package respond

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"unicode/utf8"
)

// Writer writes answers. What can't be encoded or sent goes to the log.
type Writer struct{ Log *slog.Logger }

// Error writes {"error": "…"}.
func (a Writer) Error(w http.ResponseWriter, status int, err error) {
	a.JSON(w, status, struct {
		Error string `json:"error"`
	}{err.Error()})
}

// JSON writes an answer that people may read as it is.
func (a Writer) JSON(w http.ResponseWriter, status int, v any) { a.write(w, status, v, "  ") }

// Compact writes one that is asked for again and again.
func (a Writer) Compact(w http.ResponseWriter, status int, v any) { a.write(w, status, v, "") }

func (a Writer) write(w http.ResponseWriter, status int, v any, indent string) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(v); err != nil {
		a.Log.Error("encoding an answer failed", "err", err)
		http.Error(w, "encoding the answer failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(visible(body.Bytes())); err != nil {
		a.Log.Debug("sending an answer failed", "err", err)
	}
}

// visible writes those control characters as \u00… that encoding/json leaves as they are, for who reads JSON in a
// terminal: DEL and C1. All others it has written so, or are the encoder's own new lines.
func visible(text []byte) []byte {
	is := func(r rune) bool { return r >= 0x7f && r <= 0x9f }
	if bytes.IndexFunc(text, is) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for at := bytes.IndexFunc(text, is); at >= 0; at = bytes.IndexFunc(text, is) {
		r, size := utf8.DecodeRune(text[at:])
		out = fmt.Appendf(append(out, text[:at]...), `\u%04x`, r)
		text = text[at+size:]
	}
	return append(out, text...)
}
