package board

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// sums are made here of a rank's call profile, so that rules for thousands of ranks need not read every function on
// every communicator of each.
type sums struct {
	messages, messageBytes   float64
	collectives, collectiveS float64 // calls, and seconds in them
}

// summand is a series that goes into them.
type summand struct {
	series *mapping.Series
	what   summed
}

// summed is into which of them.
type summed uint8

const (
	asMessages     summed = iota // a histogram of calls
	asMessageBytes               // a counter
	asCollectives                // a histogram of calls
)

// Functions that hand data to one other rank. Communicators without a name of their own are many in one series.
var (
	sendsMessage = regexp.MustCompile(`^MPI_(([BRS]s|Is|I[brs]s|S)end|I?[Ss]endrecv(_replace)?|R?([Pp]ut|[Aa]ccumulate))$`)
	shared       = []string{"", mapping.Unnamed, "other", "MPI_COMM_SELF"}
)

// summands are those among a rank's series.
func summands(all []*mapping.Series) (list []summand) {
	for _, s := range all {
		function := label(s, "function")
		switch {
		case s.Metric.Name == "mpit_call_bytes_total":
			if sendsMessage.MatchString(function) && label(s, "direction") == "sent" {
				list = append(list, summand{s, asMessageBytes})
			}
		case s.Metric.Name != "mpit_call_time_seconds" || s.Histogram == nil:
		case sendsMessage.MatchString(function):
			list = append(list, summand{s, asMessages})
		case api.Holds(function) && !slices.Contains(shared, label(s, "comm")):
			list = append(list, summand{s, asCollectives})
		}
	}
	return list
}

// ofFunctions says whether a family of the call profile has series for functions or peers, of which a light one has
// only the sums on the page.
func ofFunctions(name string) bool {
	return strings.HasPrefix(name, "mpit_call_") && name != "mpit_call_uncounted_total"
}

func label(s *mapping.Series, name string) string {
	for _, l := range s.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// sum adds them up. What was shown before never falls.
func (r *portrait) sum() {
	var now sums
	for _, s := range r.summands {
		if !s.series.Valid {
			continue
		}
		switch s.what {
		case asMessages:
			now.messages += float64(s.series.Histogram.Count)
		case asMessageBytes:
			now.messageBytes += s.series.Value
		case asCollectives:
			now.collectives += float64(s.series.Histogram.Count)
			now.collectiveS += s.series.Histogram.Sum
		}
	}
	r.sums = sums{max(r.sums.messages, now.messages), max(r.sums.messageBytes, now.messageBytes),
		max(r.sums.collectives, now.collectives), max(r.sums.collectiveS, now.collectiveS)}
}
