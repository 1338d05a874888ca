package exporter

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Pages that curl shows are in a terminal: whatever a rank calls its things, nothing on any page is obeyed there.
func TestNothingForTerminals(t *testing.T) {
	// a title, an empty screen, a bell, red, backwards
	const evil = "evil\x1b]0;\a\x1b[2J\r\b\t\x00\x7f\u009b31m\u0085\u202e\u200b\U000e0041\n"
	enum := &mpit.Enum{Name: evil, Items: []mpit.EnumItem{{Value: 0, Name: evil}, {Value: 1, Name: "other"}}}
	variable := func(index int, name string, class mpit.Class) mpit.Variable {
		return mpit.Variable{
			Index: index, Name: name, Description: name, Class: class, Datatype: mpit.DatatypeInt, DatatypeBytes: 4,
			Continuous: true,
		}
	}
	cfg := small(evil, 0)
	h := &cfg.Hello
	h.Host, h.Executable, h.LibraryVersion, h.AgentVersion = evil, evil, evil, evil
	h.Attributes["SLURM_STEP_ID"], h.Attributes["SLURM_JOB_NAME"], h.Attributes["SLURM_JOB_PARTITION"] = evil, evil,
		evil
	cfg.Values, cfg.Variables = nil, []mpit.Variable{
		variable(0, evil, mpit.ClassCounter), variable(1, "a"+evil, mpit.ClassState),
		variable(2, "b"+evil, mpit.ClassTimer),
	}
	cfg.Variables[0].Bind, cfg.Variables[1].Enum = mpit.BindComm, enum
	cfg.Objects = []mpit.Object{
		{Kind: mpit.BindComm, Name: evil, Size: 1, Created: testTime,
			Details: []mpit.Detail{{Key: "topology", Value: evil}}},
	}
	cfg.ControlVariables = []mpit.ControlVariable{
		{Name: evil, Description: evil, Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{0}, Enum: enum},
		{Index: 1, Name: "text", Datatype: mpit.DatatypeChar, HasValue: true, Text: evil},
	}
	cfg.Categories = []mpit.Category{
		{Name: evil, Description: evil, Variables: []int{0, 1, 2}, Subcategories: []int{1}},
		{Index: 1, Name: "b" + evil, ControlVariables: []int{0}},
	}
	rule := rules.Rule{Match: rules.Match{Regexp: "(?s)(?P<what>.*)"}, Help: "evil\x1b[2J"}
	m, err := variables.New(variables.Config{TimerInterval: time.Second,
		Rules: append([]rules.Rule{rule}, rules.Defaults()...)})
	require.NoError(t, err)
	n := startNode(t, Config{Mapper: m, ControlVariables: []string{"*"}})
	n.connect(mpittest.New(cfg))
	n.scrape()
	require.Eventually(t, func() bool {
		page := get(n.Handler(), "/metrics").Body.String()
		return strings.Contains(page, "\nmpit_cvar_ranks{") && strings.Contains(page, "\nmpit_pvar_category_info{")
	}, longest, 10*time.Millisecond)

	for _, ask := range []struct {
		path string
		page string
	}{
		{"/metrics", get(n.Handler(), "/metrics").Body.String()},
		{"/metrics as OpenMetrics", get(n.Handler(), "/metrics", "Accept", acceptOpenMetrics).Body.String()},
		{"ranks", get(n.API(), "/api/v1/ranks").Body.String()},
		{"catalogue", get(n.API(), "/api/v1/catalogue").Body.String()},
		{"values", get(n.API(), "/api/v1/values").Body.String()},
	} {
		assert.Contains(t, ask.page, "evil", ask.path)
		for line := range strings.Lines(ask.page) {
			line = strings.TrimSuffix(line, "\n")
			if !assert.Equal(t, -1, strings.IndexFunc(line, mapping.Hidden), "%s: %q", ask.path, line) {
				break
			}
		}
	}
	page := get(n.Handler(), "/metrics").Body.String()
	assert.Contains(t, page, `comm="evil�]0;��[2J������31m����\n"`,
		"a new line stays, as the format writes it")
	assert.Contains(t, page,
		"# HELP mpit_evil_0_2j_31m_xtc7aovx4_total evil�]0;��[2J � ���31m ���. MPI_T variable",
		"blanks are one in a description")
}
