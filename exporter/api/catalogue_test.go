package api

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func TestObjectStatus(t *testing.T) {
	list := objectStatus([]mpit.Object{
		{ID: 4, Kind: mpit.BindComm, Name: "halo", Size: 2, Rank: 1, Inter: true,
			Details: []mpit.Detail{{Key: "remote_size", Value: "3"}}},
		{ID: 5, Kind: mpit.BindWin, Size: 2, Rank: 0, On: 4, Created: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)},
		{ID: 6, Kind: mpit.BindOp, Size: -1, Rank: -1, On: 3},
		{ID: 7, Kind: mpit.BindUnknown},
	})
	text, err := json.Marshal(list)
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"id": 4, "kind": "comm", "name": "halo", "size": 2, "rank": 1, "inter": true, "details": {"remote_size": "3"}},
		{"id": 5, "kind": "win", "name": "", "size": 2, "rank": 0, "on": "halo", "on_id": 4, "created": "2025-01-02T03:04:05Z"},
		{"id": 6, "kind": "op", "name": "", "on_id": 3},
		{"id": 7, "kind": "unknown", "name": "", "size": 0, "rank": 0}
	]`, string(text))
}

// A bound control variable has a value on each object.
func TestControlVariableOnObjects(t *testing.T) {
	s := controlVariableStatus(&mpit.ControlVariable{Name: "v", Bind: mpit.BindComm, Datatype: mpit.DatatypeInt,
		Enum: &mpit.Enum{Items: []mpit.EnumItem{{Value: 2, Name: "red"}}}, Objects: []mpit.ObjectValue{
			{Object: 1, HasValue: true, Values: []uint64{2}}, {Object: 2, Code: mpit.ErrInvalid},
		}}, map[uint32]string{1: "halo"})
	red := "red"
	assert.Equal(t, []ObjectValueStatus{{ID: 1, Name: "halo", Value: &red}, {ID: 2, Code: "MPI_T_ERR_INVALID"}},
		s.Objects)
	assert.Nil(t, s.Value)
}

// A later sample brings new variables, with their categories, and the objects that there are then.
func TestCatalogueUpdate(t *testing.T) {
	stamp := uint64(2)
	c := Catalogue{
		Variables:  []VariableStatus{{Name: "a", index: 5}},
		Categories: []CategoryStatus{{Name: "all", variables: []int{5, 5, 6}}},
		Objects:    []ObjectStatus{{ID: 1, Name: "world"}, {ID: 2, Name: "halo"}},
	}
	c.categorize()
	assert.Equal(t, []string{"all"}, c.Variables[0].Categories)
	c.Update(&Catalogue{
		Variables:     []VariableStatus{{Name: "a", index: 5}, {Name: "b", index: 6}, {Name: "c", index: 7}},
		Objects:       []ObjectStatus{{ID: 1, Name: "renamed"}, {ID: 3, Name: "new"}},
		CategoryStamp: &stamp, ObjectsMissing: 4,
	})
	require.Len(t, c.Variables, 3)
	assert.Equal(t, []string{"all"}, c.Variables[1].Categories)
	assert.Empty(t, c.Variables[2].Categories)
	assert.Equal(t, []ObjectStatus{{ID: 1, Name: "renamed"}, {ID: 3, Name: "new"}}, c.Objects)
	assert.Equal(t, &stamp, c.CategoryStamp)
	assert.Equal(t, uint64(4), c.ObjectsMissing)
}

// So can every part of a catalogue.
func TestCatalogueBytes(t *testing.T) {
	long := strings.Repeat("x", 60_000)
	names := slices.Repeat([]string{long}, 2*maxCatalogueBytes/len(long))
	items := slices.Repeat([]mpit.EnumItem{{Name: "x"}}, maxCatalogueBytes/32)
	objects := slices.Repeat([]ObjectStatus{{Name: long}}, len(names))
	values := slices.Repeat([]ObjectValueStatus{{Name: long}}, len(names))
	for what, c := range map[string]Catalogue{
		"categories of a variable":         {Variables: []VariableStatus{{Categories: names}}},
		"an enumeration":                   {Variables: []VariableStatus{{Enum: items}}},
		"categories of a control variable": {ControlVariables: []ControlVariableStatus{{Categories: names}}},
		"its enumeration":                  {ControlVariables: []ControlVariableStatus{{Enum: items}}},
		"its objects":                      {ControlVariables: []ControlVariableStatus{{Objects: values}}},
		"parents":                          {Categories: []CategoryStatus{{Parents: names}}},
		"variables of a category":          {Categories: []CategoryStatus{{Variables: names}}},
		"objects":                          {Objects: objects},
	} {
		assert.Greater(t, sizeOf(c, maxCatalogueBytes), maxCatalogueBytes, what)
	}
}

func TestCatalogueOfWithoutAnExporter(t *testing.T) {
	l, err := mpit.Listen(filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	r := mpittest.New(mpittest.Everything())
	require.NoError(t, r.Connect(t.Context(), l.Path()))
	defer r.Kill()
	s, err := l.Accept(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()

	mapper, err := variables.New(variables.Config{Rules: rules.Defaults()})
	require.NoError(t, err)
	c, err := CatalogueOf(t.Context(), s, mapper)
	require.NoError(t, err)
	assert.Equal(t, "everything", c.Rank.JobID)
	assert.Equal(t, os.Getpid(), c.Rank.Peer.PID, "the kernel's word, not the rank's")
	assert.NotEmpty(t, c.Variables)
	assert.NotEmpty(t, c.ControlVariables)
	text, err := json.MarshalIndent(c, "", "  ")
	require.NoError(t, err)
	assert.InEpsilon(t, len(text), sizeOf(c, maxCatalogueBytes), 0.25, "it is about as large as it is taken for")

	r.Stall(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = CatalogueOf(ctx, s, mapper)
	assert.ErrorIs(t, err, context.Canceled)
}
