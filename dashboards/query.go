package dashboards

import (
	"fmt"
	"regexp"
	"strings"
)

// What a panel looks at. A dashboard of jobs is about clusters, which have a label where there are several; that of
// the exporters about scrape jobs.
const (
	inClusters = `cluster=~"$cluster"`
	ofJobs     = inClusters + `, user=~"$user"`
	ofOneJob   = inClusters + `, user="$user", jobid="$jobid", world=~"$world"`
	ofRanks    = ofOneJob + `, rank=~"$rank"`
	ofComms    = ofRanks + `, comm=~"$comm"`
	ofNodes    = `job=~"$job", instance=~"$instance"`
)

// The ranges of queries: the dashboard's whole time range, and the time around one point of a graph. atTheEnd is the
// former at each point of a graph.
const (
	inRange    = "[$__range]"
	atTheEnd   = "[$__range] @ end()"
	atOnePoint = "[$__rate_interval]"
)

// job is the labels that say which job it is, as the rules have them; process those that say which rank. dup tells two
// processes of a user apart that claim the same. Where rules make one series of a node's ranks, there is no rank, and
// the node takes its place.
const (
	job     = "cluster, jobid, world, user"
	process = "cluster, instance, jobid, world, user, rank, dup"
)

// selector is a family's series.
func selector(family, matchers string) string { return family + "{" + matchers + "}" }

// named is the series of all families whose name has a form.
func named(names, matchers string) string {
	return fmt.Sprintf(`{__name__=~"%s", %s}`, names, matchers)
}

// A Prometheus stores a histogram as series that end in _sum, _count and _bucket, or as a native histogram under the
// family's own name. Callers name the former; rateOf, last, here, quantileOf and bucketsOf ask for both.
var (
	ofHistogram = regexp.MustCompile(`^(.+)_(sum|count)(\{[^}]*\})$`)
	ofBuckets   = regexp.MustCompile(`^(.+)_bucket(\{[^}]*\})$`)
)

// either asks for a counter; for a histogram's sum or count, also for what a native one has in its place.
func either(selector string, counter, native func(selector string) string) string {
	m := ofHistogram.FindStringSubmatch(selector)
	if m == nil {
		return counter(selector)
	}
	return "(" + counter(selector) + " or histogram_" + m[2] + "(" + native(m[1]+m[3]) + "))"
}

// rateOf is how fast a counter grows, over the time around a point or over the whole range.
func rateOf(selector, over string) string {
	rate := func(selector string) string { return "rate(" + selector + over + ")" }
	return either(selector, rate, rate)
}

// rateAt is rateOf around a point of a graph.
func rateAt(selector string) string { return rateOf(selector, atOnePoint) }

// grow is how much a counter has grown between two points of a graph, so that single events are seen.
func grow(selector string) string { return "increase(" + selector + atOnePoint + ")" }

// last is the last value within the time range: also of what has ended since.
func last(selector string) string {
	last := func(selector string) string { return "last_over_time(" + selector + inRange + ")" }
	// Before Prometheus 2.44, last_over_time loses native histograms: there what has not ended has its value at least.
	return either(selector, last, func(selector string) string { return selector + " or " + last(selector) })
}

// here is the value at a point of a graph.
func here(selector string) string {
	itself := func(selector string) string { return selector }
	return either(selector, itself, itself)
}

// quantileOf is a duration or size that this share of what a histogram counts over a window stays below, by labels if
// there are any.
func quantileOf(q float64, by, buckets, over string) string {
	m := ofBuckets.FindStringSubmatch(buckets)
	le, all := "le", "sum(%s)"
	if by != "" {
		le, all = by+", le", "sum by ("+by+") (%s)"
	}
	return fmt.Sprintf("histogram_quantile(%g, %s) or histogram_quantile(%[1]g, %[3]s)", q,
		sumBy(le, rateOf(buckets, over)), fmt.Sprintf(all, rateOf(m[1]+m[2], over)))
}

// bucketsOf is how many events of each duration or size there were, for a heat map.
func bucketsOf(buckets string) string {
	m := ofBuckets.FindStringSubmatch(buckets)
	return sumBy("le", grow(buckets)) + " or on () sum(" + grow(m[1]+m[2]) + ")"
}

// sumBy, maxBy and countBy are what they say.
func sumBy(by, expr string) string   { return fmt.Sprintf("sum by (%s) (%s)", by, expr) }
func maxBy(by, expr string) string   { return fmt.Sprintf("max by (%s) (%s)", by, expr) }
func minBy(by, expr string) string   { return fmt.Sprintf("min by (%s) (%s)", by, expr) }
func countBy(by, expr string) string { return fmt.Sprintf("count by (%s) (%s)", by, expr) }

// aligned puts blanks before a label's numbers of fewer than four digits: then texts are in the order of the numbers.
func aligned(label, expr string) string {
	for digits := 1; digits < 4; digits++ {
		blanks := strings.Repeat(" ", 4-digits)
		expr = fmt.Sprintf(`label_replace(%s, "%s", "%s$1", "%[2]s", "([0-9]{%[4]d})")`, expr, label, blanks, digits)
	}
	return expr
}

// top is the series that have most over the whole time range, by labels: the same ones at each point of a graph. expr
// makes an expression of a window.
func top(n int, by string, expr func(over string) string) string {
	return extreme("topk", n, by, expr)
}

// extreme is top, or those that have least: bottomk.
func extreme(which string, n int, by string, expr func(over string) string) string {
	if by == "" { // there is one
		return expr(atOnePoint)
	}
	return fmt.Sprintf("%s\nand on (%s) %s(%d, %s)", expr(atOnePoint), by, which, n, expr(atTheEnd))
}

// most is top of levels: their highest values are compared.
func most(n int, by, level string) string {
	return fmt.Sprintf("%s\nand on (%s) topk(%d, %s)", maxBy(by, level), by, n,
		maxBy(by, "max_over_time("+level+atTheEnd+")"))
}

// orZero is 0 where nothing is there to be counted.
func orZero(expr string) string { return expr + " or vector(0)" }

// withQueues says who has the queues that the rules look at.
const withQueues = "Open MPI's ob1, Open MPI built with SPC, MPICH built with pvars, and MVAPICH have it."
