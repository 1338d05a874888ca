package dashboards

import "fmt"

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

// rateOf is how fast a counter grows.
func rateOf(selector string) string { return "rate(" + selector + atOnePoint + ")" }

// grow is how much a counter has grown between two points of a graph, so that single events are seen.
func grow(selector string) string { return "increase(" + selector + atOnePoint + ")" }

// last is the last value within the time range: also of what has ended since.
func last(selector string) string { return "last_over_time(" + selector + inRange + ")" }

// sumBy, maxBy and countBy are what they say.
func sumBy(by, expr string) string   { return fmt.Sprintf("sum by (%s) (%s)", by, expr) }
func maxBy(by, expr string) string   { return fmt.Sprintf("max by (%s) (%s)", by, expr) }
func minBy(by, expr string) string   { return fmt.Sprintf("min by (%s) (%s)", by, expr) }
func countBy(by, expr string) string { return fmt.Sprintf("count by (%s) (%s)", by, expr) }

// orZero is 0 where nothing is there to be counted.
func orZero(expr string) string { return expr + " or vector(0)" }
