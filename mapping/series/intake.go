package series

import "github.com/mpit-exporter/mpit-exporter/mapping"

// intake is a sample that is being taken in.
type intake struct {
	values  []uint64
	at      int64                     // when it was taken, in Unix nanoseconds
	dropped map[mapping.Reason]uint64 // values that are left out
	relist  bool                      // the set of series has changed
}
