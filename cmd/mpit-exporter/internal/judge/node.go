package judge

import (
	"slices"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

const (
	// window is of how long a verdict on lost time is, at least: as long as from one scrape to the next.
	window = 10 * time.Second
	// remembered is the longest time between two scrapes of which that is known, or else of the whole job.
	remembered = time.Minute
	// apart is how old a verdict may be, where there is a newer page.
	apart = 5 * time.Second
)

// Node judges the jobs whose ranks are all on this node; of others it says nothing. It is a prometheus.Gatherer, safe
// for concurrent use.
type Node struct {
	values func() api.ValueList

	mu   sync.Mutex
	past job.Window
}

// NewNode returns a Node that has what stands on the page from values (exporter.Exporter.CallTimes).
func NewNode(values func() api.ValueList) *Node {
	return &Node{values: values, past: job.Window{Longest: remembered}}
}

// Gather implements prometheus.Gatherer. It asks no rank: the scrape that it is for has just done so.
func (n *Node) Gather() ([]*dto.MetricFamily, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.past.Now()) >= apart {
		if list := n.values(); list.Time.Sub(n.past.Now()) >= apart { // unless it has been known
			n.past.Add(list.Time, whole(job.Of([]api.ValueList{list}, nil)))
		}
	}
	return families(n.past.Since(window)), nil
}

// whole leaves out worlds of which ranks are missing, or may be.
func whole(reports []*job.Report) []*job.Report { return slices.DeleteFunc(reports, isPart) }

// isPart says that a report is not of all ranks of a world, or may not be.
func isPart(r *job.Report) bool {
	ranks := map[int]bool{}
	for i := range r.Ranks {
		ranks[r.Ranks[i].Rank] = true
	}
	return r.Job.WorldSize == 0 || len(ranks) < r.Job.WorldSize
}
