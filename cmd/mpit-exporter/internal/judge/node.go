package judge

import (
	"context"
	"fmt"
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
	// apart is how old a verdict may be.
	apart = time.Second
	// patience is how long a scrape waits for a verdict.
	patience = time.Second
)

// Node judges the jobs whose ranks are all on this node; of others it says nothing. It is a prometheus.Gatherer, safe
// for concurrent use.
type Node struct {
	values func(ctx context.Context) (api.ValueList, error)

	mu   sync.Mutex
	past job.Window
}

// NewNode returns a Node that asks for the values of ranks in this way (exporter.Exporter.Window).
func NewNode(values func(ctx context.Context) (api.ValueList, error)) *Node {
	return &Node{values: values, past: job.Window{Longest: remembered}}
}

// Gather implements prometheus.Gatherer. The ranks have just been asked, by the scrape.
func (n *Node) Gather() ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.past.Now()) >= apart {
		list, err := n.values(ctx)
		if err != nil {
			return nil, fmt.Errorf("judging the jobs of this node: %w", err)
		}
		if list.Time.Sub(n.past.Now()) >= apart { // unless it has been known
			n.past.Add(list.Time, whole(job.Of([]api.ValueList{list}, nil)))
		}
	}
	return families(n.past.Since(window)), nil
}

// whole leaves out jobs of which ranks are missing, in any of their worlds, or may be.
func whole(reports []*job.Report) []*job.Report {
	missing := map[whose]bool{}
	for _, r := range reports {
		if isPart(r) {
			missing[whose{r.Job.ID, r.Job.User}] = true
		}
	}
	return slices.DeleteFunc(reports, func(r *job.Report) bool { return missing[whose{r.Job.ID, r.Job.User}] })
}

// isPart says that a report is not of all ranks of a world, or may not be.
func isPart(r *job.Report) bool {
	ranks := map[int]bool{}
	for i := range r.Ranks {
		ranks[r.Ranks[i].Rank] = true
	}
	return r.Job.WorldSize == 0 || len(ranks) < r.Job.WorldSize
}
