package httpserver

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	repeatsWindow = time.Minute
	repeatsKinds  = 32 // net/http has a handful
)

// repeats lets one line of each kind through in a minute, and says with the next one how many were left out:
// strangers can make net/http complain as often as they like. The kind is a line's first three words. Its user is a
// log.Logger, which writes a line at a time and never concurrently.
type repeats struct {
	to    io.Writer
	now   func() time.Time
	kinds map[string]*repeated
}

type repeated struct {
	since time.Time // when one was let through last
	out   int       // how many were left out since
}

// newRepeats returns one that writes what it lets through to another writer.
func newRepeats(to io.Writer) io.Writer {
	return &repeats{to: to, now: time.Now, kinds: map[string]*repeated{}}
}

func (r *repeats) Write(line []byte) (int, error) {
	words := strings.Fields(string(line[:min(len(line), 200)]))
	kind := strings.Join(words[:min(3, len(words))], " ")
	now := r.now()
	k := r.kinds[kind]
	switch {
	case k == nil:
		if len(r.kinds) >= repeatsKinds {
			clear(r.kinds)
		}
		r.kinds[kind] = &repeated{since: now}
	case now.Sub(k.since) < repeatsWindow:
		k.out++
		return len(line), nil
	default:
		if k.out > 0 {
			line = append(bytes.TrimRight(bytes.Clone(line), "\n"),
				fmt.Sprintf(" (and %d like it before)\n", k.out)...)
		}
		*k = repeated{since: now}
	}
	return r.to.Write(line)
}
