package mpit

import (
	"math"
	"net"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// What tests outside the package need of its inside: package mpittest, which makes their input, imports this one.

func DecodeHello(f wire.Frame) (Hello, error) { return decodeHello(f) }

// Answers takes the frames of answers to SAMPLE.
type Answers struct{ catalogue catalogue }

func (a *Answers) Frame(f wire.Frame) (Sample, bool, error) {
	if a.catalogue.held == nil {
		a.catalogue = newCatalogue(&memory{of: NewShares(math.MaxInt, 0)}, newAlike())
	}
	return a.catalogue.frame(f)
}

// Request is what is asked for next.
func (a *Answers) Request() wire.SampleRequest { return a.catalogue.has }

func DecodeControlVariables(payload []byte, first int) (list []ControlVariable, next, total int, err error) {
	list, p, err := decodePage(payload, "control variables", first, func(r *wire.Decoder) (ControlVariable, int) {
		return decodeControlVariable(r, nil)
	})
	return list, p.next, p.total, err
}

func DecodeCategories(payload []byte, first int) (list []Category, next, total int, stamp uint64, err error) {
	list, p, err := decodePage(payload, "categories", first, func(r *wire.Decoder) (Category, int) {
		return decodeCategory(r, nil)
	})
	return list, p.next, p.total, p.stamp, err
}

// ToolAnswer is what an operation of TOOL has given.
type ToolAnswer struct {
	Refused         *RefusedError
	Session, Handle uint32
	Count           int
	Words           []uint64
	Value           CvarValue
	Index           int
	Variable        uint32
	Known           bool
}

func DecodeTool(payload []byte, op wire.ToolOperation, count int) (ToolAnswer, error) {
	a, err := decodeTool(payload, op, count)
	return ToolAnswer{
		Refused: a.refused, Session: a.session, Handle: a.handle, Count: a.count, Words: a.words, Value: a.value,
		Index: a.index, Variable: a.variable, Known: a.known,
	}, err
}

// WithPeers says who connects in the kernel's place: tests run as one user.
func WithPeers(peer func(*net.UnixConn) (Peer, error)) ListenOption {
	return func(c *listenConfig) { c.peer = peer }
}

// Held returns how many connections there are by the listener's account, and how many bytes of memory they hold.
func (l *Listener) Held() (connections, bytes int) {
	for s, n := range map[*Shares]*int{l.connections: &connections, l.memory: &bytes} {
		s.mu.Lock()
		*n = s.used
		s.mu.Unlock()
	}
	return connections, bytes
}

// Alike is how many lists of variables connections of a listener could share.
func (l *Listener) Alike() int {
	l.alike.mu.Lock()
	defer l.alike.mu.Unlock()
	return len(l.alike.lists)
}
