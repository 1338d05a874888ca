package mapping

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// A program makes, names and frees communicators, counts, wraps, switches observation off for a while; the exporter reconnects
// and restarts, cannot read at times, looks seldom. Counters are exactly what the program counted while observation was on, and
// never fall; nor do histograms.
func TestCountersAreTrueAndNeverFall(t *testing.T) {
	yes := true
	rules := []Rule{{Match: Match{Name: "offset"}, Offset: &yes}, {Match: Match{Name: "timer", Class: List{"timer"}}, Offset: &yes}}
	rapid.Check(t, func(t *rapid.T) {
		a := newAgent(on("uint", mpit.ClassCounter, tUint), on("int", mpit.ClassCounter, tInt), on("offset", mpit.ClassAggregate, tLong),
			on("timer", mpit.ClassTimer, tDouble), on("timer", mpit.ClassCounter, tULong), on("plain", mpit.ClassTimer, tDouble))
		r := newRank(t, nil, rules...)
		names := rapid.SampledFrom([]string{"", "a", "b", "c"})
		truth := map[string]float64{}
		shown := map[string]float64{}
		loses := rapid.Bool().Draw(t, "loses remains")
		unread := false
		restarted := false
		resets := 0

		key := func(h *agentHandle) string {
			v := a.vars[h.Variable]
			return v.Name + nameOf(v.Class) + "/" + CleanName(a.nameOf(h.Object))
		}
		count := func(h *agentHandle, n int) {
			old := h.values[0]
			switch v := a.vars[h.Variable]; v.Datatype {
			case tUint:
				h.values[0] = uint64(uint32(h.values[0] + uint64(n)))
			case tInt:
				h.values[0] = uint64(int64(int32(h.values[0] + uint64(n))))
			case tDouble:
				h.values[0] = math.Float64bits(math.Float64frombits(h.values[0]) + float64(n)/1e7)
			default:
				h.values[0] += uint64(n)
			}
			if a.paused {
				return
			}
			if a.vars[h.Variable].Datatype == tDouble {
				truth[key(h)] += math.Float64frombits(h.values[0]) - math.Float64frombits(old)
			} else {
				truth[key(h)] += float64(n)
			}
		}
		update := func() {
			a.failed = map[uint32]bool{}
			if len(shown) > 0 && len(r.Series()) > 0 && rapid.IntRange(0, 4).Draw(t, "fails") == 0 && len(a.handles) > 0 {
				a.failed[rapid.SampledFrom(a.handles).Draw(t, "which").ID] = true
				unread = true
			} else {
				unread = false
			}
			r.Update(a.after(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds")) * time.Second).sample())
			now := map[string]float64{}
			for _, s := range r.Series() {
				id := s.Metric.Name + fmt.Sprint(s.Labels)
				if !s.Valid {
					if _, was := shown[id]; was {
						t.Fatalf("%s has vanished", id)
					}
					continue
				}
				now[id] = s.Value
				if h := s.Histogram; h != nil {
					now[id] = h.Sum
					now[id+"count"] = float64(h.Count)
					for i, n := range h.Counts {
						now[id+fmt.Sprint(i)] = float64(n)
					}
				}
			}
			for id, was := range shown {
				is, ok := now[id]
				if restarted && a.calls > 0 {
					// Where the exporter could not read what had been excluded just before it was restarted, the new one's
					// difference of three doubles may be a digit less than the old one's.
					was -= was / (1 << 50)
				}
				if !ok && was > 0 || is < was {
					t.Fatalf("%s falls from %v to %v (there %v)", id, was, is, ok)
				}
			}
			shown, restarted = now, false
			if a.loseRemains || unread {
				return
			}
			for _, v := range r.order {
				for _, c := range v.list {
					want := truth[v.info.Name+nameOf(v.info.Class)+"/"+c.id.object]
					if c.count.has && math.Abs(c.count.value-want) > 1e-6 {
						t.Fatalf("%s of %q is %v, the program counted %v", v.info.Name, c.id.object, c.count.value, want)
					}
				}
			}
		}
		open := func() {
			o := a.object(names.Draw(t, "name"), 1)
			for _, h := range a.handles {
				if h.Object != o {
					continue
				}
				switch a.vars[h.Variable].Name {
				case "offset":
					h.values[0] = word(-1000 * 1000 * 1000)
				case "timer":
					if a.vars[h.Variable].Class == mpit.ClassTimer {
						h.values[0] = word(-1.5)
					}
				case "uint":
					h.values[0] = uint64(rapid.SampledFrom([]int{0, 5, 1<<32 - 10}).Draw(t, "first"))
					truth[key(h)] += float64(h.values[0])
				}
				if h.values[0] != 0 {
					h.First = append([]uint64(nil), h.values...)
				}
			}
		}
		// few are the last counts before an end, which nobody sees; the agent's remains have them. They never wrap: such a
		// wrap is noticed by the sum that falls, and not if something else rises as much before the next look.
		few := func(object uint32) {
			for _, h := range a.handles {
				bits := map[mpit.Datatype]int{tUint: 32, tInt: 31}[a.vars[h.Variable].Datatype]
				wraps := !a.paused && bits > 0 && h.values[0]+9 >= 1<<bits && h.values[0] < 1<<bits
				if h.Object == object && !a.loseRemains && !wraps {
					count(h, rapid.IntRange(0, 9).Draw(t, "few"))
				}
			}
		}
		// seen makes sure that the exporter has read everything: a part that wraps unread and then ends has wrapped unknown.
		seen := func() {
			update()
			a.failed = map[uint32]bool{}
			r.Update(a.sample())
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			object := func() (uint32, bool) {
				if len(a.objects) == 0 {
					return 0, false
				}
				return rapid.SampledFrom(a.objects).Draw(t, "object").ID, true
			}
			switch rapid.SampledFrom([]string{"count", "count", "count", "big", "open", "free", "rename", "reconnect", "restart", "late", "lose",
				"pause", "resume", "unseen"}).Draw(t, "what") {
			case "count", "late":
				if o, ok := object(); ok {
					for _, h := range a.handles {
						if h.Object == o {
							count(h, rapid.IntRange(0, 1000).Draw(t, "n"))
						}
					}
				}
			case "big": // at most a quarter of the range between two looks
				update()
				if o, ok := object(); ok && !unread {
					for _, h := range a.handles {
						if h.Object == o && a.vars[h.Variable].Datatype != tDouble {
							count(h, rapid.IntRange(0, 1<<30-1).Draw(t, "n"))
						}
					}
				}
				a.failed = map[uint32]bool{}
				r.Update(a.sample())
				update()
			case "open":
				if len(a.objects) < 6 {
					open()
				}
			case "free":
				seen()
				if o, ok := object(); ok {
					few(o)
					a.free(o)
				}
			case "rename":
				seen()
				if o, ok := object(); ok {
					few(o)
					a.rename(o, names.Draw(t, "to"))
				}
			case "reconnect":
				a.reconnect()
			case "restart":
				update()
				blob, _ := r.Blob()
				if len(blob) > MaxBlob {
					t.Fatalf("blob of %d bytes", len(blob))
				}
				r, restarted = newRank(t, blob, rules...), true
				a.failed = map[uint32]bool{} // else it waits, see maxWait
				r.Update(a.sample())
			case "pause":
				a.pause()
			case "resume":
				a.resume()
			case "unseen": // whatever happens in a pause: a wrap, several, a reset
				if o, ok := object(); ok && a.paused {
					for _, h := range a.handles {
						switch {
						case h.Object != o:
						case a.vars[h.Variable].Datatype != tDouble:
							count(h, rapid.IntRange(0, 1<<32-1).Draw(t, "n"))
						case a.vars[h.Variable].Name == "plain" && rapid.Bool().Draw(t, "reset"):
							resets++ // no value twice: by the value at a rename the exporter knows that there was one
							h.values[0] = word(math.Float64frombits(h.values[0])/2 + float64(resets)/1e10)
						default:
							count(h, rapid.IntRange(0, 1<<20).Draw(t, "n"))
						}
					}
				}
			case "lose":
				a.loseRemains = a.loseRemains || loses
			}
			if rapid.Bool().Draw(t, "looks") {
				update()
			}
		}
		update()
	})
}
