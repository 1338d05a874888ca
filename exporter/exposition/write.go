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

// Write writes the page, for so many readers who release it.
func (p *Page) Write(to Format, readers int) *body.Body {
	p.Arrange()
	p.series = 0
	size := &p.size[to]
	b := body.New(readers, *size)
	for _, f := range p.families {
		if n := f.write(b, to); n > 0 {
			b.End(f.name)
			p.series += n
		}
	}
	b.Finish()
	*size = b.Compressed() + b.Compressed()/16
	return b
}

// write writes a family, unless it has no series now, and returns how many it has.
func (f *family) write(b *body.Body, to Format) (n int) {
	if to == Protobuf {
		return f.writeMessage(b)
	}
	return f.writeText(b, to)
}
