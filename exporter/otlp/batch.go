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
}

// scope is the blocks of one scope.
type scope struct {
	metricdata.ScopeMetrics // without metrics
	blocks                  []*block
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
	scope    *scope
	block    *block
	from, to int
}

// batch is one message.
type batch struct {
	data   metricdata.ResourceMetrics
	points int
	parts  []part
}

// last is where the next point is added, if it follows.
func (b *batch) last() *part {
	if b == nil {
		return &part{}
	}
	return &b.parts[len(b.parts)-1]
}

// pack makes messages of at most limit bytes and says how many points are too large for any.
func pack(res *resource.Resource, scopes []*scope, limit int) (batches []*batch, tooLarge int) {
	head := envelope + envelope + sizeOfSet(*res.Set()) + nested(len(res.SchemaURL()))
	var open *batch
	room := 0 // in open
	for _, s := range scopes {
		scopeHead := s.headSize()
		for _, b := range s.blocks {
			blockHead := b.headSize()
			for i := range b.points {
				size := b.size(i)
				alone := scopeHead + blockHead + size
				if head+alone > limit {
					tooLarge++
					continue
				}
				last := open.last()
				need := alone
				follows := last.block == b && last.to == i
				switch {
				case follows:
					need = size
				case last.scope == s:
					need = blockHead + size
				}
				if open == nil || need > room {
					open, room, need, follows = &batch{}, limit-head, alone, false
					batches = append(batches, open)
				}
				if follows {
					last.to++
				} else {
					open.parts = append(open.parts, part{s, b, i, i + 1})
				}
				open.points++
				room -= need
			}
		}
	}
	for _, b := range batches {
		b.fill(res)
	}
	return batches, tooLarge
}

// fill makes the message of its parts.
func (b *batch) fill(res *resource.Resource) {
	b.data.Resource = res
	var in *scope
	for _, p := range b.parts {
		if p.scope != in {
			in = p.scope
			b.data.ScopeMetrics = append(b.data.ScopeMetrics, metricdata.ScopeMetrics{Scope: in.Scope})
		}
		m := p.block.metric
		m.Data = p.block.cut(p.from, p.to)
		to := &b.data.ScopeMetrics[len(b.data.ScopeMetrics)-1]
		to.Metrics = append(to.Metrics, m)
	}
}
