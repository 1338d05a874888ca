package mapping

// Member is one rank of a Group, at the moment of Group.Update.
type Member struct {
	Number    int // in its MPI_COMM_WORLD
	Figures   any // tells members apart, from Update to Update: the Rank itself. Comparable
	Structure uint64
	Series    []*Series // those with Ranks RankKeep or MergeEach are passed over
	Live      bool      // answers: else its lasting series alone count
	Old       bool      // was there before this exporter: an earlier one may have shown what it has counted
}

// Group merges the series of the ranks of one MPI_COMM_WORLD on this node, each variable by its class. It belongs to one
// goroutine.
type Group struct{}

// NewGroup returns a Group without members.
func NewGroup() *Group { return &Group{} }

// Update takes all members as they are now. A member that is not among them any more has ended: what it has counted, and its
// watermarks, stay.
func (g *Group) Update(members []Member) {}

// Series is all merged series, in a stable order, kept as those of a Rank: without rank, state and so on as in Series.Labels.
func (g *Group) Series() []*Series { return nil }

// Structure is a number that changes when the set of series does.
func (g *Group) Structure() uint64 { return 0 }
