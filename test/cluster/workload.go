package cluster

import (
	"math"
	"math/rand/v2"
	"time"
)

// workload makes up the jobs of a machine as the model of Lublin and Feitelson does: "The workload on parallel
// supercomputers: modeling the characteristics of rigid jobs", Journal of Parallel and Distributed Computing 63 (2003),
// which was fitted to logs of the Parallel Workloads Archive. Its figures for all jobs together, batch and interactive,
// are those below. Two things are ours: how far apart arrivals are follows from the load that is asked for, and the
// hour of the day doesn't matter.
type workload struct {
	random *rand.Rand
	nodes  int
	gap    float64                                            // factor of the times between arrivals
	draw   func(*rand.Rand) (width int, length time.Duration) // other jobs than the model's, unless nil
}

// The model's figures. The widths are logarithms to base 2, the durations natural ones, of seconds.
const (
	serial, powerOfTwo   = 0.244, 0.576
	narrowest, belowFull = 0.8, 2.5 // the least width; how far below the full machine the second stage begins
	narrow               = 0.86     // share of the first stage

	shortShape, shortScale = 4.2, 0.94
	longShape, longScale   = 312, 0.03
	shortShare, perNode    = 0.78, -0.0054
	longest                = 12

	gapShape, gapScale = 10.2303 * 1.0225, 0.4871
	longestGap         = 13
)

// newWorkload is that of a machine of so many nodes, which its jobs would keep busy for such a share of the time.
func newWorkload(seed uint64, nodes int, load float64) *workload {
	return newWorkloadOf(seed, nodes, load, nil)
}

// newWorkloadOf has jobs of another kind.
func newWorkloadOf(seed uint64, nodes int, load float64, draw func(*rand.Rand) (int, time.Duration)) *workload {
	w := &workload{random: rand.New(rand.NewPCG(seed, 0)), nodes: nodes, gap: 1, draw: draw}
	const draws = 200_000
	var gaps, work float64
	for range draws {
		width, length := w.job()
		work += float64(width) * length.Seconds()
		gaps += w.pause().Seconds()
	}
	w.gap = work / (load * float64(nodes)) / gaps
	return w
}

// job is a job's width in nodes and its length.
func (w *workload) job() (width int, length time.Duration) {
	if w.draw != nil {
		return w.draw(w.random)
	}
	width = 1
	if kind := w.random.Float64(); kind > serial {
		full := math.Log2(float64(w.nodes))
		low, high := narrowest, max(full-belowFull, narrowest)
		if w.random.Float64() > narrow {
			low, high = high, full
		}
		exponent := low + (high-low)*w.random.Float64()
		if kind <= serial+powerOfTwo {
			exponent = math.Round(exponent)
		}
		width = min(max(1, int(math.Round(math.Exp2(exponent)))), w.nodes)
	}
	share := min(max(0, shortShare+perNode*float64(width)), 1)
	logarithm := math.Inf(1)
	for logarithm > longest {
		if w.random.Float64() < share {
			logarithm = w.gamma(shortShape, shortScale)
		} else {
			logarithm = w.gamma(longShape, longScale)
		}
	}
	return width, seconds(math.Exp(logarithm))
}

// pause is how long after a job the next one arrives.
func (w *workload) pause() time.Duration {
	logarithm := math.Inf(1)
	for logarithm > longestGap {
		logarithm = w.gamma(gapShape, gapScale)
	}
	return seconds(w.gap * math.Exp(logarithm))
}

// gamma is a number from a gamma distribution with a shape above 1, by Marsaglia's and Tsang's method (2000).
func (w *workload) gamma(shape, scale float64) float64 {
	d := shape - 1./3
	for {
		x := w.random.NormFloat64()
		v := math.Pow(1+x/math.Sqrt(9*d), 3)
		if v > 0 && math.Log(1-w.random.Float64()) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v * scale
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
