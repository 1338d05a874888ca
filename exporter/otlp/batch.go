package otlp

import (
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

const (
	// receiversLimit is what receivers take by default, of a message before compression.
	receiversLimit = 4 << 20

	// maxMessage is what is sent at most.
	maxMessage = receiversLimit - 4<<10
)

// block is the points of one metric, to be cut into pieces.
type block struct {
	metric metricdata.Metrics // without data
	points int
	size   func(i int) int // bytes of a point in a message, at most
	cut    func(from, to int) metricdata.Aggregation
	next   []advance // of deltas: what becomes of each point's series when it has been delivered
}

// scope is the blocks of one scope.
type scope struct {
	metricdata.ScopeMetrics // without metrics
	blocks                  []*block
}

// delivered moves the series of the points on.
func (b *block) delivered(from, to int) {
	if b.next == nil {
		return
	}
	for i := from; i < to; i++ {
		b.next[i].apply()
	}
}

// headSize is what a metric takes in each message, besides its points.
func (b *block) headSize() int {
	return envelope + nested(len(b.metric.Name)) + nested(len(b.metric.Description)) + nested(len(b.metric.Unit)) +
		envelope + 2*2
}

func (s *scope) headSize() int {
	return envelope + envelope + nested(len(s.Scope.Name)) + nested(len(s.Scope.Version)) +
		sizeOfSet(s.Scope.Attributes) + nested(len(s.Scope.SchemaURL))
}

// part is some points of a block.
type part struct {
	block    *block
	from, to int
}

// batch is one message.
type batch struct {
	data   metricdata.ResourceMetrics
	points int
	parts  []part
}

// delivered notes that the receiver has accepted the message.
func (b *batch) delivered() {
	for _, p := range b.parts {
		p.block.delivered(p.from, p.to)
	}
}

// pack makes messages of at most limit bytes and says how many points are too large for any.
func pack(res *resource.Resource, scopes []*scope, limit int) (batches []*batch, tooLarge int) {
	head := envelope + envelope + sizeOfSet(*res.Set()) + nested(len(res.SchemaURL()))
	p := packer{res: res, head: head, room: limit - head}
	for _, s := range scopes {
		for _, b := range s.blocks {
			p.metric(s, b, limit)
		}
	}
	p.close()
	return p.batches, p.tooLarge
}

// packer fills one message after the other.
type packer struct {
	res      *resource.Resource
	head     int // of each message
	room     int // in the open one
	batch    *batch
	scope    *scope // open in it
	batches  []*batch
	tooLarge int
}

func (p *packer) metric(s *scope, b *block, limit int) {
	from, open := 0, false // points from..i are in the open message
	flush := func(to int) {
		if open && to > from {
			p.put(b, from, to)
		}
		open = false
	}
	for i := range b.points {
		size := b.size(i)
		need := size
		if !open {
			need += b.headSize()
			if p.scope != s {
				need += s.headSize()
			}
		}
		if need > p.room {
			if p.head+s.headSize()+b.headSize()+size > limit {
				flush(i)
				p.tooLarge++
				from = i + 1
				continue
			}
			flush(i)
			p.close()
			p.room = limit - p.head
			need = size + s.headSize() + b.headSize()
		}
		if !open {
			p.openScope(s)
			from, open = i, true
		}
		p.room -= need
	}
	flush(b.points)
}

// openScope makes sure that there is a message with s at its end.
func (p *packer) openScope(s *scope) {
	if p.batch == nil {
		p.batch = &batch{data: metricdata.ResourceMetrics{Resource: p.res}}
	}
	if p.scope != s {
		p.scope = s
		p.batch.data.ScopeMetrics = append(p.batch.data.ScopeMetrics, metricdata.ScopeMetrics{Scope: s.Scope})
	}
}

func (p *packer) put(b *block, from, to int) {
	m := b.metric
	m.Data = b.cut(from, to)
	last := &p.batch.data.ScopeMetrics[len(p.batch.data.ScopeMetrics)-1]
	last.Metrics = append(last.Metrics, m)
	p.batch.points += to - from
	p.batch.parts = append(p.batch.parts, part{b, from, to})
}

func (p *packer) close() {
	if p.batch != nil {
		p.batches = append(p.batches, p.batch)
	}
	p.batch, p.scope = nil, nil
}
