package dashboards

import (
	"fmt"
	"regexp"
)

// What a panel looks at. The label job is the scraper's.
const (
	ofJobs   = `job=~"$job", user=~"$user", jobid=~"$jobid"`
	ofOneJob = `job=~"$job", user="$user", jobid="$jobid", world=~"$world"`
	ofRanks  = ofOneJob + `, rank=~"$rank"`
	ofComms  = ofRanks + `, comm=~"$comm"`
	ofNodes  = `job=~"$job", instance=~"$instance"`
)

// The ranges of queries: the dashboard's whole time range, and the time around one point of a graph.
const (
	inRange    = "[$__range]"
	atOnePoint = "[$__rate_interval]"
)

// process is the labels that say which rank it is. dup tells two processes of a user apart that claim the same. Where
// rules make one series of a node's ranks, there is no rank, and the node takes its place.
const process = "instance, jobid, world, user, rank, dup"

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

// rateOf is how fast a counter grows.
func rateOf(selector string) string {
	rate := func(selector string) string { return "rate(" + selector + atOnePoint + ")" }
	return either(selector, rate, rate)
}

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

// quantileOf is a duration or size that this share of what a histogram has counted stays below, by labels if there are
// any.
func quantileOf(q float64, by, buckets string) string {
	m := ofBuckets.FindStringSubmatch(buckets)
	le, all := "le", "sum(%s)"
	if by != "" {
		le, all = by+", le", "sum by ("+by+") (%s)"
	}
	return fmt.Sprintf("histogram_quantile(%g, %s) or histogram_quantile(%[1]g, %[3]s)", q,
		sumBy(le, rateOf(buckets)), fmt.Sprintf(all, rateOf(m[1]+m[2])))
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

// orZero is 0 where nothing is there to be counted.
func orZero(expr string) string { return expr + " or vector(0)" }
