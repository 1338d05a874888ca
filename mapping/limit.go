package mapping

// SetLimit bounds the weight of the rank's series (Series.Weight), from the next Update on. Over it, the newest objects'
// series become one called other, variable by variable; if that is not enough, variables are left out, those of the highest
// verbosity first. What is over is counted as dropped, for reason. Below zero: no limit.
func (r *Rank) SetLimit(weight int, reason Reason) {}

// Weight is the weight of all series of the rank that stand on the page for themselves (RankKeep, RankBoth).
func (r *Rank) Weight() int { return 0 }
