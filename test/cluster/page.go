package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// template is how the page of a real job of a few ranks, scraped twice, is made that of any number of ranks.
type template struct {
	families []family
	ranks    int
}

// family is the lines of a family, of each rank of the template, and those of no rank.
type family struct {
	name, kind string
	ofRank     [][]line
	ofNode     []line
}

// line is a series: its name, its labels without those that tell ranks apart, and what it was in the two scrapes.
type line struct {
	name, labels  string
	first, growth float64 // at the first scrape, and a second later; of a gauge, how much it changed between them
}

var (
	sample   = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	ofRank   = regexp.MustCompile(`(?:^|,)rank="(\d+)"`)
	identity = regexp.MustCompile(`(^|,)(?:jobid|world|user|rank)="[^"]*"`)
)

// newTemplate is made of two scrapes of the only job on a page.
func newTemplate(first, second []byte, between time.Duration) (*template, error) {
	later := map[string]float64{}
	for text := bufio.NewScanner(bytes.NewReader(second)); text.Scan(); {
		if series, value, ok := strings.Cut(text.Text(), "} "); ok {
			later[series+"}"], _ = strconv.ParseFloat(value, 64)
		}
	}
	t := &template{}
	text := bufio.NewScanner(bytes.NewReader(first))
	for text.Scan() {
		if kind, ok := strings.CutPrefix(text.Text(), "# TYPE "); ok {
			name, kind, _ := strings.Cut(kind, " ")
			t.families = append(t.families, family{name: name, kind: kind})
		}
		match := sample.FindStringSubmatch(text.Text())
		// A verdict's rank is the one that is named, if any.
		if match == nil || len(t.families) == 0 || match[1] == "mpit_job_verdict_info" {
			continue
		}
		f := &t.families[len(t.families)-1]
		value, err := strconv.ParseFloat(match[3], 64)
		if err != nil {
			return nil, fmt.Errorf("the value of %s: %w", match[1], err)
		}
		l := line{name: match[1], labels: match[2], first: value}
		if last, ok := later[match[1]+"{"+match[2]+"}"]; ok {
			l.growth = last - value
		}
		if f.kind != "gauge" {
			l.growth /= between.Seconds()
		}
		of := ofRank.FindStringSubmatch(match[2])
		if of == nil {
			f.ofNode = append(f.ofNode, l)
			continue
		}
		rank, err := strconv.Atoi(of[1])
		if err != nil {
			return nil, fmt.Errorf("the rank of %s: %w", match[1], err)
		}
		l.labels = strings.TrimPrefix(identity.ReplaceAllString(match[2], ""), ",")
		for len(f.ofRank) <= rank {
			f.ofRank = append(f.ofRank, nil)
		}
		f.ofRank[rank] = append(f.ofRank[rank], l)
		t.ranks = max(t.ranks, rank+1)
	}
	if t.ranks < 2 {
		return nil, fmt.Errorf("the page has %d ranks; two or more make a template", t.ranks)
	}
	return t, text.Err()
}

// removeBuckets leaves histograms their sums and counts.
func (t *template) removeBuckets() {
	for _, f := range t.families {
		for rank := range f.ofRank {
			f.ofRank[rank] = slices.DeleteFunc(f.ofRank[rank], func(l line) bool { return strings.HasSuffix(l.name, "_bucket") })
		}
	}
}

// series is how many the template's ranks have, of one rank, and the node.
func (t *template) series() (rank float64, node int) {
	all := 0
	for _, f := range t.families {
		node += len(f.ofNode)
		for _, lines := range f.ofRank {
			all += len(lines)
		}
	}
	return float64(all) / float64(t.ranks), node
}

// like is the rank of the template that a rank is like: rank 0 may be a late one.
func (t *template) like(rank int) int {
	if rank == 0 {
		return 0
	}
	return 1 + rank%(t.ranks-1)
}

// exporters are those of a machine's nodes.
type exporters struct {
	machine  *machine
	template *template
	ranks    int                  // of a node
	clock    func() time.Duration // model time
	gone     *atomic.Bool         // they don't answer any more; nil: they always do
	served   *served              // nil: nobody asks for it
}

// served is what is on pages beside the machine's jobs, and what was.
type served struct {
	lines atomic.Int64
	hung  atomic.Int64 // number of a job whose ranks can't go on; 0: none
}

// exporter is that of node i.
func (e exporters) exporter(i int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if e.gone != nil && e.gone.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		e.machine.advance(e.clock())
		places, now := e.machine.shown(i)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		page := e.page(places, now)
		if e.served != nil {
			page = e.served.add(page, places)
		}
		_, _ = w.Write(page) // who has gone needs none
	})
}

func (e exporters) page(places []place, now time.Duration) []byte {
	var text []byte
	for _, f := range e.template.families {
		text = fmt.Appendf(text, "# TYPE %s %s\n", f.name, f.kind)
		for _, l := range f.ofNode {
			text = l.append(text, "", l.at(f.kind, now.Seconds()))
		}
		if len(f.ofRank) == 0 {
			continue
		}
		for _, p := range places {
			ended := p.job.end <= now
			age := (min(now, p.job.end) - p.job.start).Seconds()
			for r := p.index * e.ranks; r < (p.index+1)*e.ranks; r++ {
				labels := p.labels(r)
				for _, l := range f.ofRank[e.template.like(r)] {
					value := l.at(f.kind, age)
					if l.name == "mpit_rank_up" && ended {
						value = 0
					}
					text = l.append(text, labels, value)
				}
			}
		}
	}
	text = append(text, "# TYPE mpit_rank_end_info gauge\n"...)
	end := line{name: "mpit_rank_end_info", labels: `reason="finalize"`}
	for _, p := range places {
		if p.job.end > now {
			continue
		}
		for r := p.index * e.ranks; r < (p.index+1)*e.ranks; r++ {
			text = end.append(text, p.labels(r), 1)
		}
	}
	return text
}

// add says of the job that hangs what its node's exporter does.
func (s *served) add(page []byte, places []place) []byte {
	for _, p := range places {
		if int64(p.job.number) != s.hung.Load() || p.index != 0 {
			continue
		}
		page = fmt.Appendf(page, "mpit_job_verdict_info{jobid=%[1]q,world=\"%[1]s.0\",user=\"user%[2]d\",state=\"deadlock\",rank=\"\",node=\"\"} 1\n"+
			"mpit_call_running_info{%[3]s,function=\"MPI_Recv\",comm=\"MPI_COMM_WORLD\"} 1\n", strconv.Itoa(p.job.number),
			p.job.number%20, p.labels(0))
	}
	s.lines.Add(int64(bytes.Count(page, []byte("\n"))))
	return page
}

// append writes the series of a rank, or of the node.
func (l line) append(text []byte, rank string, value float64) []byte {
	text = append(text, l.name...)
	if rank != "" && l.labels != "" {
		rank += ","
	}
	if rank != "" || l.labels != "" {
		text = append(append(append(append(text, '{'), rank...), l.labels...), '}')
	}
	text = strconv.AppendFloat(append(text, ' '), value, 'g', -1, 64)
	return append(text, '\n')
}

func (p place) labels(rank int) string {
	return fmt.Sprintf(`jobid="%d",rank="%d",user="user%d",world="%[1]d.0"`, p.job.number, rank, p.job.number%20)
}

// at is the value when the job is so many seconds old. What counts whole things stays whole, and what didn't change in
// the template doesn't here; a gauge that did is anything between its two values.
func (l line) at(kind string, age float64) float64 {
	switch {
	case l.growth == 0:
		return l.first
	case kind == "gauge":
		return l.first + rand.Float64()*l.growth
	case l.first == math.Trunc(l.first):
		return l.first + math.Floor(max(0, l.growth)*age)
	}
	return l.first + max(0, l.growth)*age
}
