// Package respond writes the answers of the exporter's JSON APIs.
package respond

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Writer writes answers. What can't be encoded or sent goes to the log.
type Writer struct{ Log *slog.Logger }

// Error writes {"error": "…"}.
func (a Writer) Error(w http.ResponseWriter, status int, err error) {
	a.JSON(w, status, map[string]string{"error": err.Error()})
}

// JSON writes an answer that people may read as it is.
func (a Writer) JSON(w http.ResponseWriter, status int, v any) { a.write(w, status, v, "  ") }

// Compact writes one that is asked for again and again.
func (a Writer) Compact(w http.ResponseWriter, status int, v any) { a.write(w, status, v, "") }

func (a Writer) write(w http.ResponseWriter, status int, v any, indent string) {
	p := &pieces{to: w, indent: indent}
	p.begin = func() {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
	}
	if of := reflect.ValueOf(v); of.Kind() == reflect.Struct {
		p.fields(of)
	} else {
		p.value(v, 0)
	}
	p.text("\n")
	switch {
	case p.err != nil && p.begin != nil:
		a.Log.Error("encoding an answer failed", "err", p.err)
		http.Error(w, "encoding the answer failed", http.StatusInternalServerError)
	case p.err != nil:
		a.Log.Debug("sending an answer failed", "err", p.err)
	}
}

// pieces writes an answer as encoding/json does, but the elements of its lists one by one: the whole text may be large.
type pieces struct {
	to     io.Writer
	begin  func() // before the first byte; nil: it has been written
	indent string
	err    error
}

func (p *pieces) text(s string) {
	if p.err != nil {
		return
	}
	if p.begin != nil {
		p.begin()
		p.begin = nil
	}
	_, p.err = io.WriteString(p.to, s)
}

// line begins a line so deep in, if lines are wanted.
func (p *pieces) line(depth int) {
	if p.indent != "" {
		p.text("\n" + strings.Repeat(p.indent, depth))
	}
}

// elements writes a list or an object of n elements, between these brackets.
func (p *pieces) elements(brackets string, depth, n int, element func(i int)) {
	p.text(brackets[:1])
	for i := range n {
		if i > 0 {
			p.text(",")
		}
		p.line(depth + 1)
		element(i)
	}
	if n > 0 {
		p.line(depth)
	}
	p.text(brackets[1:])
}

// value writes one as a whole.
func (p *pieces) value(v any, depth int) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent(strings.Repeat(p.indent, depth), p.indent)
	if err := encoder.Encode(v); err != nil {
		p.err = cmp.Or(p.err, err)
		return
	}
	p.text(string(mapping.EscapeHidden(bytes.TrimSuffix(text.Bytes(), []byte("\n")))))
}

// fields writes a struct, none of whose fields are embedded.
func (p *pieces) fields(of reflect.Value) {
	var names []string
	var fields []reflect.Value
	for field, value := range of.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		empty := value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0
		if options != "omitempty" || !empty {
			names, fields = append(names, name), append(fields, value)
		}
	}
	colon := ":"
	if p.indent != "" {
		colon = ": "
	}
	p.elements("{}", 0, len(fields), func(i int) {
		p.text(strconv.Quote(names[i]) + colon)
		if list := fields[i]; list.Kind() == reflect.Slice && !list.IsNil() {
			p.elements("[]", 1, list.Len(), func(at int) { p.value(list.Index(at).Interface(), 2) })
		} else {
			p.value(list.Interface(), 1)
		}
	})
}
