package job

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// SitesOf are those of an answer, by module and offset until they are named.
func SitesOf(list []api.Site) (sites []Site) {
	for _, of := range list {
		from := ""
		if of.Module != "" {
			from = fmt.Sprintf("%s+%#x", path.Base(of.Module), of.Offset)
		}
		sites = append(sites, Site{of, from})
	}
	return sites
}

// Answers says that all ranks run and answer: they can be asked for their sites without a wait for those that don't.
func (r *Report) Answers() bool {
	return r.Job.Ended == nil && !slices.ContainsFunc(r.Ranks, func(of Rank) bool { return of.silent() || of.ended() })
}

// Locate has the verdict's sentence say from where ranks have called what it names: as calls under way show it, or
// else the site of that call where they have waited most. Of a call from several places, or from code without a name,
// it says nothing.
func (r *Report) Locate() {
	from := map[string]string{}
	add := func(c Called, at string) {
		switch was, twice := from[c.where()]; {
		case !twice:
			from[c.where()] = at
		case was != at:
			from[c.where()] = ""
		}
	}
	for _, p := range r.Places() {
		add(Called{Function: p.Call, Object: p.Object}, p.From)
	}
	for _, s := range r.Sites {
		call := Called{s.Function, s.Kind, s.Object}.where()
		if _, under := from[call]; !under {
			from[call] = s.From
		}
	}
	for call, at := range from {
		before, after, names := strings.Cut(r.Verdict.Text, "in "+call)
		ends := after == "" || strings.ContainsAny(after[:1], " ,;") && !strings.HasPrefix(after, " on ")
		if names && ends && at != "" && !strings.Contains(at, "+0x") && !strings.HasPrefix(after, " at ") {
			r.Verdict.Text = before + "in " + call + " at " + at + after
		}
	}
}
