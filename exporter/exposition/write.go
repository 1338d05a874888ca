package exposition

import "github.com/mpit-exporter/mpit-exporter/exporter/internal/body"

// Format is what a page is written as.
type Format uint8

// The formats.
const (
	Text        Format = iota // 0.0.4
	OpenMetrics               // 1.0.0, without its end
	Protobuf                  // delimited messages, with native histograms
)

// Style says how a page is written.
type Style struct {
	Format  Format
	Created bool // _created lines, in OpenMetrics; protobuf always has created timestamps
}

// Write writes the page, for so many readers who release it.
func (p *Page) Write(s Style, readers int) *body.Body {
	p.Arrange()
	s.Created = s.Created && s.Format == OpenMetrics
	p.series = 0
	size := &p.size[s.Format]
	b := body.New(readers, *size)
	for _, f := range p.families {
		if n := f.write(b, s); n > 0 {
			b.End(f.name)
			p.series += n
		}
	}
	b.Finish()
	*size = b.Compressed() + b.Compressed()/16
	return b
}

// write writes a family, unless it has no series now, and returns how many it has.
func (f *family) write(b *body.Body, s Style) (n int) {
	if s.Format == Protobuf {
		return f.writeMessage(b)
	}
	return f.writeText(b, s)
}
