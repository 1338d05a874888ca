package identity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

func TestRules(t *testing.T) {
	said := Process{ID: Identity{JobID: "100_3", World: "0", Rank: 2}, Source: sourceSlurm, JobName: "alice-cfd",
		Partition: "batch"}
	others := map[string]string{"rank": "2", "user": "alice", "host": "node7", "cgroup_jobid": "104",
		"source": "slurm", "env_SLURM_CLUSTER_NAME": "big"}
	for _, test := range []struct {
		name  string
		rules []rules.Relabel
		want  Process // only id, jobName and partition
	}{
		{"no rules", nil, said},
		{"tasks of an array under one job, told apart by their worlds", []rules.Relabel{
			{SourceLabels: []string{"jobid", "world"}, Regex: `[0-9]+_([0-9]+);(.*)`, TargetLabel: "world",
				Replacement: text("$1.$2")},
			{SourceLabels: []string{"jobid"}, Regex: `([0-9]+)_[0-9]+`, TargetLabel: "jobid"},
		}, Process{ID: Identity{JobID: "100", World: "3.0"}, JobName: "alice-cfd", Partition: "batch"}},
		{"a user's name into nothing", []rules.Relabel{{SourceLabels: []string{"user", "jobname"},
			Separator: text("/"), Regex: `([^/]+)/alice-(.*)`, TargetLabel: "jobname", Replacement: text("$2")}},
			Process{ID: said.ID, JobName: "cfd", Partition: "batch"}},
		{"several clusters", []rules.Relabel{{SourceLabels: []string{"env_SLURM_CLUSTER_NAME", "jobid"},
			Regex: `(?P<cluster>.+);(.+)`, TargetLabel: "jobid", Replacement: text("${cluster}/$2")}},
			Process{ID: Identity{JobID: "big/100_3", World: "0"}, JobName: "alice-cfd", Partition: "batch"}},
		{"the kernel's word", []rules.Relabel{{SourceLabels: []string{"cgroup_jobid"}, Regex: "(.+)",
			TargetLabel: "jobid"}},
			Process{ID: Identity{JobID: "104", World: "0"}, JobName: "alice-cfd", Partition: "batch"}},
		{"a variable that is not there", []rules.Relabel{{SourceLabels: []string{"env_SGE_CELL"},
			TargetLabel: "jobid"}}, said},
		{"an expression that does not match the whole", []rules.Relabel{{SourceLabels: []string{"jobid"},
			Regex: "100", TargetLabel: "jobid", Replacement: text("x")}}, said},
		{"alternatives are of the whole, too", []rules.Relabel{{SourceLabels: []string{"jobid"}, Regex: "100|3",
			TargetLabel: "jobid", Replacement: text("x")}}, said},
		{"an empty result keeps the old value", []rules.Relabel{{SourceLabels: []string{"jobid"},
			TargetLabel: "jobid", Replacement: text(" ")}}, said},
		{"without sources", []rules.Relabel{{TargetLabel: "partition", Replacement: text("all$$")}},
			Process{ID: said.ID, JobName: "alice-cfd", Partition: "all$"}},
		{"a result is cleaned", []rules.Relabel{{TargetLabel: "world", Replacement: text("a\x1bb\xff")}},
			Process{ID: Identity{JobID: "100_3", World: "a\uFFFDbÿ"}, JobName: "alice-cfd", Partition: "batch"}},
		{"and bounded", []rules.Relabel{{SourceLabels: []string{"host"}, Regex: "(.*)", TargetLabel: "world",
			Replacement: text(strings.Repeat("$1", 100))}},
			Process{ID: Identity{JobID: "100_3", World: strings.Repeat("node7", 100)[:clean.MaxLabel]},
				JobName: "alice-cfd", Partition: "batch"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rl, err := Compile(test.rules)
			require.NoError(t, err)
			c := said
			rl.apply(&c, func(source string) string { return others[source] })
			test.want.ID.Rank, test.want.Source = 2, sourceSlurm
			assert.Equal(t, test.want, c)
		})
	}
}

// The rules in docs/labels.md do what stands beside them.
func TestDocumentedRules(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "labels.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	text, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	file, err := rules.Parse("docs/labels.md", []byte(text))
	require.NoError(t, err)
	rl, err := Compile(file.Identity)
	require.NoError(t, err)
	for _, test := range []struct {
		said          Process
		env           map[string]string // by source
		job, world    string
		name, because string
	}{
		{Process{ID: Identity{JobID: "4711", World: "0"}, Source: sourceSlurm}, nil, "4711", "0", "",
			"nothing is to be changed"},
		{Process{ID: Identity{JobID: "100_3", World: "0"}, Source: sourceSlurm}, nil, "100", "3.0", "",
			"a task of an array"},
		{Process{ID: Identity{JobID: "4711", World: "0"}, Source: sourceSlurm},
			map[string]string{"env_SLURM_CLUSTER_NAME": "big"}, "big/4711", "0", "", "a cluster"},
		{Process{ID: Identity{JobID: "train", World: "w"}, Source: sourceKubernetes, Partition: "ml"}, nil,
			"ml/train", "w", "", "an MPIJob"},
		{Process{ID: Identity{JobID: "vm-1", World: "vm-1"}, Source: sourceHydra},
			map[string]string{"cgroup_jobid": "104"}, "104", "vm-1", "", "started by ssh"},
		{Process{ID: Identity{JobID: "vm-1", World: "vm-1"}, Source: sourceHydra},
			map[string]string{"cgroup_jobid": podUID}, "vm-1", "vm-1", "", "in a pod"},
		{Process{ID: Identity{JobID: "4711", World: "0"}, Source: sourceSlurm, JobName: "alice-cfd"}, nil, "4711",
			"0", "cfd", "a user's name"},
	} {
		c := test.said
		rl.apply(&c, func(source string) string {
			if source == "source" {
				return c.Source
			}
			return test.env[source]
		})
		assert.Equal(t, []string{test.job, test.world, test.name}, []string{c.ID.JobID, c.ID.World, c.JobName},
			test.because)
	}
}

func TestBadRules(t *testing.T) {
	at := rules.Source{File: "site.yaml", Line: 7}
	for name, test := range map[string]struct {
		rule rules.Relabel
		want string
	}{
		"no target": {rules.Relabel{Source: at},
			`site.yaml:7: this rule of identity has no target_label; write target_label: one of jobid, world, jobname, partition`},
		"a target too many": {rules.Relabel{Source: at, TargetLabel: "rank"},
			`site.yaml:7: target_label: the label "rank" can't be changed`},
		"an unknown source": {rules.Relabel{TargetLabel: "jobid", SourceLabels: []string{"pid"}},
			`identity rule 1: source_labels[0]: there is no source label "pid"; write one of jobid, world`},
		"no expression": {rules.Relabel{TargetLabel: "jobid", Regex: "("},
			`regex: bad regular expression "(": missing closing ): `},
		"two halves of one": {rules.Relabel{TargetLabel: "jobid", Regex: "a)(b"}, `bad regular expression "a)(b"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile([]rules.Relabel{test.rule})
			require.ErrorContains(t, err, test.want)
		})
	}
}

// Whatever rules say, and ranks: what comes out is fit for labels, and never empty where something was.
func FuzzRules(f *testing.F) {
	f.Add("(.*)", "$1", "100_3", "node7")
	f.Add(`([0-9]+)_(?P<task>\d+);.*`, "${task}.$1", "100_3", "")
	f.Add("(?s).*", "\xff\n", "x", "\n")
	f.Fuzz(func(t *testing.T, regex, replacement, job, host string) {
		rl, err := Compile([]rules.Relabel{
			{SourceLabels: []string{"jobid", "host"}, Regex: regex, TargetLabel: "jobid", Replacement: &replacement},
		})
		if err != nil {
			return
		}
		c := Process{ID: Identity{JobID: clean.Label(job)}}
		before := c.ID.JobID
		rl.apply(&c, func(string) string { return host })
		if v := c.ID.JobID; !utf8.ValidString(v) || len(v) > clean.MaxLabel || v != clean.Label(v) || v == "" &&
			before != "" {
			t.Errorf("%q is no label value, it was %q", v, before)
		}
	})
}

func text(s string) *string { return &s }
