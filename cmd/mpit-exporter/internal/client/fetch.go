package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// maxError is how much is read of an error's text.
const maxError = 64 << 10

// StatusError is an answer with another status than 200.
type StatusError struct {
	Code int
	text string
}

func (e *StatusError) Error() string { return e.text }

// ErrTooLarge is that an answer had no room.
var ErrTooLarge = errors.New("the answer is too large")

// JSON decodes an answer into what a pointer leads to.
func JSON(into any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(into) }
}

// Fetch gets what an address has, of something that answers like what is named, and has it decoded. The other side
// isn't trusted, as any user may listen on a port: the answer ends where there is no room for what would be made of it,
// in bytes of memory, and Fetch ends with ctx.
func Fetch(ctx context.Context, over *http.Client, from *url.URL, like string, room int, decode func(io.Reader) error,
) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), http.NoBody)
	if err != nil {
		return err
	}
	where := (&url.URL{Scheme: from.Scheme, User: from.User, Host: from.Host, Path: from.Path}).Redacted()
	err = cli.Await(ctx, func() error {
		response, err := over.Do(request)
		if err != nil {
			if inner := (*url.Error)(nil); errors.As(err, &inner) {
				err = inner.Err // the query says nothing to a user
			}
			if errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("nothing answers at %s: is the address right? (%w)", where, syscall.ECONNREFUSED)
			}
			return fmt.Errorf("asking %s: %w", where, err)
		}
		defer func() { _ = response.Body.Close() }()
		if kind := response.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
			return fmt.Errorf("%s answers with a web page (%s), not like %s: is the address right?", where,
				mapping.OneLine(response.Status), like)
		}
		if response.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(response.Body, maxError))
			return &StatusError{response.StatusCode, fmt.Sprintf("%s answers %s: %s", where,
				mapping.OneLine(response.Status), answerError(text))}
		}
		body := &bounded{from: response.Body, room: room, left: room}
		err = decode(body)
		if body.err != nil {
			err = body.err // the decoder's may be about what it lacks
		}
		switch {
		case body.err != nil, errors.Is(err, ErrTooLarge):
			return fmt.Errorf("reading the answer of %s: %w", where, err)
		case err != nil:
			return fmt.Errorf("%s does not answer like %s: %w", where, like, err)
		}
		return nil
	})
	if ctx.Err() != nil {
		return fmt.Errorf("asking %s: %w", where, context.Cause(ctx))
	}
	return err
}

// bounded reads JSON until the values in it would take more memory than there is room.
type bounded struct {
	from       io.Reader
	room, left int
	err        error // what reading has failed with
}

// What becomes of JSON, in bytes of memory, roughly: an object of two characters may be a rank without properties.
const (
	perByte   = 4 // read, and copied as buffers grow
	perObject = 512
	perQuote  = 16 // a text has two
)

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= perByte*n + perObject*bytes.Count(p[:n], []byte{'{'}) + perQuote*bytes.Count(p[:n], []byte{'"'})
	if b.left < 0 {
		n, err = 0, fmt.Errorf("%w: it would take more than %d MiB of memory", ErrTooLarge, b.room>>20)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// answerError is the text of the API's error, or the beginning of whatever else was answered.
func answerError(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		text = answer.Error
	}
	return table.Shorten(mapping.OneLine(strings.TrimSpace(text)), 200)
}
