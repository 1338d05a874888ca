package exposition

import "slices"

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
	// What else is on the answer has its place before the first family with a greater name, or before or behind all.
	Gap string
}

// spillBytes is how much is written before it is compressed.
const spillBytes = 64 << 10

// Write writes the page, for so many readers who release it.
func (p *Page) Write(s Style, readers int) *Body {
	p.Arrange()
	s.Created = s.Created && s.Format == OpenMetrics
	p.series = 0
	b, size := newBody(readers), &p.size[s.Format]
	b.pack.out = slices.Grow(b.pack.out, *size) // else it is copied again and again while it grows
	b.pack.begin()
	defer b.pack.finish()
	for _, f := range p.families {
		if s.Gap != "" && f.name > s.Gap {
			b.endSegment()
			s.Gap = ""
		}
		if n := b.write(f, s); n > 0 {
			b.names = append(b.names, f.name)
			p.series += n
		}
		if len(b.text) >= spillBytes {
			b.spill()
		}
	}
	b.endSegment()
	length := len(b.pack.out)
	*size = length + length/16
	return b
}

// write writes a family, unless it has no series now, and returns how many it has.
func (b *Body) write(f *family, s Style) (n int) {
	if s.Format == Protobuf {
		return b.writeMessage(f)
	}
	return b.writeText(f, s)
}
