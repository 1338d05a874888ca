package rules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// rules is a rule file of one rule, whose lines begin in line 2.
func oneRule(lines string) string {
	return "rules:\n- " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n  ") + "\n"
}

func TestParseReadsAllKeys(t *testing.T) {
	f, err := Parse("all.yaml", []byte(`# Everything.
limits: {series: 1000, series_per_job: 500, series_per_user: 600, series_per_rank: 50, series_per_variable: 10}
identity:
  - source_labels: [env_SLURM_ARRAY_JOB_ID, jobid]
    separator: "-"
    regex: (\d+)-(.*)
    target_label: jobid
    replacement: ${1}_$2
rules:
  - match:
      library: [mpich, mvapich]
      version: ">=4.0 <5.1"
      regexp: x_(?P<function>.+)_time
      class: timer
      bind: [comm, win]
      verbosity: [user_basic, user_detail]
    drop: false
    class: timer
    unit: us
    scale: 1000
    name: x_time
    help: Time in x.
    merge: sum
    elements: peer
    nonzero: true
    object: false
    companion: x_${function}_calls
    buckets: [0.001, 1, 1e3]
    offset: true
    open: true
  - name: plain
`))
	require.NoError(t, err)
	yes, no, thousand, dash, replacement := true, false, 1000.0, "-", "${1}_$2"
	assert.Equal(t, &File{
		Limits: Limits{1000, 500, 600, 50, 10},
		Identity: []Relabel{{
			Source: Source{"all.yaml", 4}, SourceLabels: []string{"env_SLURM_ARRAY_JOB_ID", "jobid"}, Separator: &dash,
			Regex: `(\d+)-(.*)`, TargetLabel: "jobid", Replacement: &replacement,
		}},
		Rules: []Rule{{
			Source: Source{"all.yaml", 10},
			Match: Match{
				Library: List{"mpich", "mvapich"}, Version: ">=4.0 <5.1", Regexp: "x_(?P<function>.+)_time",
				Class: List{"timer"},
				Bind:  List{"comm", "win"}, Verbosity: List{"user_basic", "user_detail"},
			},
			Drop: &no, Class: "timer", Unit: "us", Scale: &thousand, Name: "x_time", Help: "Time in x.",
			Merge: mapping.MergeSum, Elements: mapping.MergePeer,
			Nonzero: &yes, Object: &no, Companion: "x_${function}_calls", Buckets: []float64{0.001, 1, 1000},
			Offset: &yes, Open: &yes,
		}, {Source: Source{"all.yaml", 31}, Name: "plain"}},
	}, f)
	for i := range reflect.TypeFor[Rule]().NumField() {
		assert.False(t, reflect.ValueOf(f.Rules[0]).Field(i).IsZero() && reflect.TypeFor[Rule]().Field(i).Name != "Source",
			"the key of Rule.%s is not in all.yaml", reflect.TypeFor[Rule]().Field(i).Name)
	}
}

func manyGroups(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "(?P<x%d>.)", i)
	}
	return b.String()
}

const badNameRemedy = "write small letters, digits and _, without what the exporter puts before names (mpit_) and " +
	"behind them (_total), what it has itself (exporter_…, …_bucket), short and derived units (ms, minutes), the " +
	"metric's kind (gauge) and, if it doesn't only grow, _count"

// Each mistake is told with its place, and most with what to write instead.
func TestMistakesInRuleFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // lines without the file's name
	}{
		"nothing":    {"", ""},
		"comments":   {"# rules:\n", ""},
		"no mapping": {"- rules", "1: cannot unmarshal !!seq into rules.File"},
		"key": {"rule: 1\nlimits: 2\n", "1: field rule not found in type rules.File\n" +
			"2: cannot unmarshal !!int `2` into rules.Limits"},
		"nothing in it": {"rules:\n", "1:7: rules has no value; write one, or take the key out"},
		"empty list":    {"rules: []\n", "1:8: rules has no value; write one, or take the key out"},
		"no UTF-8": {"rules: [{drop: true}]\n# \xff", " this is no YAML: invalid leading UTF-8 octet; mend the indentation, or put in " +
			"quotes what begins with * or holds a colon"},
		"several documents": {"rules: [{drop: true}]\n---\nlimits: {series: 5}\n",
			"2:1: a second document begins here; take the --- out, or make it a file of its own"},
		"star": {oneRule("match: {name: *_bytes}"), " this is no YAML: unknown anchor '_bytes' referenced; mend the " +
			"indentation, or put in quotes what begins with * or holds a colon"},
		"colon": {oneRule("help: a: b"), "2: this is no YAML: mapping values are not allowed in this context; mend the " +
			"indentation, or put in quotes what begins with * or holds a colon"},
		"key in two places": {oneRule("name: a\nname: b"), "3: mapping key \"name\" already defined at line 2"},
		"removed key": {oneRule("match: {category: coll}\ndrop: true"), "2: field category not found in type " +
			"rules.Match; match by name instead; mpit-exporter list --category=NAME shows which names a category has"},
		"removed way to treat ranks": {"rank: node\n" + oneRule("name: x\nrank: keep"), "1: field rank not found in type " +
			"rules.File; each rank has series of its own; exec --calls=light leaves few of them (docs/capacity.md)\n" +
			"4: field rank not found in type rules.Rule; each rank has series of its own; exec --calls=light leaves few of " +
			"them (docs/capacity.md)"},
		"number":        {oneRule("scale: fast"), "2: cannot unmarshal !!str `fast` into float64"},
		"text":          {oneRule("help: [a]"), "2: cannot unmarshal !!seq into string"},
		"list of words": {oneRule("match: {class: {timer: 1}}\ndrop: true"), "2: cannot unmarshal !!map into []string"},
		"empty": {oneRule("match: {name: ''}\ndrop: true"),
			"2:17: rules[0].match.name has no value; write one, or take the key out"},
		"rule without a word": {oneRule("match: {name: a}"),
			"2:3: this rule sets nothing; write what it sets: drop, class, name …"},
		"aliases":         {"rules: [{match: &a {class: level}, unit: s}, {match: *a, help: x}, {<<: {unit: s}}]", ""},
		"rule of nothing": {"rules: [null]", "1:9: rules[0] has no value; write one, or take the key out"},

		"library": {oneRule("match: {library: Open-MPI}\ndrop: true"),
			`2:20: library "Open-MPI" is not known; write one of openmpi, mpich, mvapich, intelmpi, craympich`},
		"version": {oneRule("match: {version: 4.0}\ndrop: true"),
			`2:20: version range "4.0": "4.0" is no bound; write bounds such as ">=4.0 <5.1": <, <=, >, >= or =, and right behind it numbers with points`},
		"version operator": {oneRule("match: {version: =>4}\ndrop: true"),
			`2:20: version range "=>4": "=>4" is no bound; write bounds such as ">=4.0 <5.1": <, <=, >, >= or =, and right behind it numbers with points`},
		"version space": {oneRule("match: {version: '>= 4'}\ndrop: true"),
			`2:20: version range ">= 4": ">=" is no bound; write bounds such as ">=4.0 <5.1": <, <=, >, >= or =, and right behind it numbers with points`},
		"version suffix": {oneRule("match: {version: <6.0rc2}\ndrop: true"),
			`2:20: version range "<6.0rc2": "<6.0rc2" is no bound; write bounds such as ">=4.0 <5.1": <, <=, >, >= or =, and right behind it numbers with points`},
		"class": {oneRule("match: {class: COUNTER}\nclass: timers"), "2:18: class \"COUNTER\" is none of MPI_T's; " +
			"write one of state, level, size, percentage, highwatermark, lowwatermark, counter, aggregate, timer, generic\n" +
			"3:10: class \"timers\" is none of MPI_T's; write one of " +
			"state, level, size, percentage, highwatermark, lowwatermark, counter, aggregate, timer, generic"},
		"bind": {oneRule("match: {bind: [comm, window]}\ndrop: true"), "2:24: bind \"window\" is none of MPI_T's; " +
			"write one of none, comm, datatype, errhandler, file, group, op, request, win, message, info, session"},
		"verbosity": {oneRule("match: {verbosity: '<=user_all'}\ndrop: true"), "2:22: verbosity \"<=user_all\" is none of " +
			"MPI_T's; write one of user_basic, user_detail, user_all, tuner_basic, tuner_detail, tuner_all, mpidev_basic, " +
			"mpidev_detail, mpidev_all"},
		"two patterns": {oneRule("match: {name: a, regexp: b}\ndrop: true"),
			"2:28: there is a name to match as well; keep one of the two, or write two rules"},
		"long glob": {oneRule("match: {name: " + strings.Repeat("a", 257) + "}\ndrop: true"),
			"2:17: the pattern has 257 bytes, at most 256 are read; write a shorter one"},
		"regexp": {oneRule("match: {regexp: 'a('}\ndrop: true"), "2:19: bad regular expression \"a(\": missing " +
			"closing ): `a(`; write one of RE2's, such as 'coll_(?P<function>[a-z]+)_time'"},
		"lookahead": {oneRule("match: {regexp: '(?=a)'}\ndrop: true"), "2:19: bad regular expression \"(?=a)\": " +
			"invalid or unsupported Perl syntax: `(?=`; write one of RE2's, such as 'coll_(?P<function>[a-z]+)_time'"},
		"open bracket": {oneRule("match: {name: a\ndrop: true"), "1: this is no YAML: did not find expected ',' or '}'; " +
			"mend the indentation, or put in quotes what begins with * or holds a colon"},
		"several lines": {oneRule("match:\n  regexp: |\n    a(\n    b\ndrop: true"), "3:13: bad regular expression " +
			"\"a(\\nb\\n\": missing closing ): `a(\\nb\\n`; write one of RE2's, such as " +
			"'coll_(?P<function>[a-z]+)_time'"},
		"unknown unit": {oneRule("unit: furlong"),
			`2:9: unit "furlong" is none of UCUM's that metrics have; write one of By, KiBy, MiBy, GiBy, kBy, MBy, GBy, s, ms, us, ns, min, h, 1, %, J, W, V, A, Hz, Cel, none, or what is counted: {message}`},
		"scale": {oneRule("scale: -1"),
			`2:10: scale -1 is not above 0 and at most 1e30; write a factor above 0, such as 0.001`},
		"merge": {oneRule("merge: avg"), `2:10: merge "avg" is not known; write one of sum, max, min, each`},
		"elements": {oneRule("elements: each"),
			`2:13: elements "each" is not known; write one of sum, max, min, peer, index`},
		"help": {oneRule("help: " + strings.Repeat("x", 301)),
			"2:9: the help has 301 bytes; write at most 300"},
		"buckets": {oneRule("class: timer\nbuckets: [1, 1]"),
			"3:12: buckets: bounds must rise; write upper bounds that rise, in seconds or bytes, such as [0.001, 0.01, 0.1]"},
		"capital": {oneRule("name: Foo"),
			`2:9: name "Foo" can't be a metric's; ` + badNameRemedy},
		"no word": {oneRule("name: __"),
			`2:9: name "__" can't be a metric's; ` + badNameRemedy},
		"prefix": {oneRule("name: mpit_foo"),
			`2:9: name "mpit_foo" can't be a metric's; ` + badNameRemedy},
		"total": {oneRule("match: {name: a_*}\nname: $1_total"),
			`3:9: name "$1_total" can't be a metric's; ` + badNameRemedy},
		"a part's name": {oneRule("name: foo_bucket"),
			`2:9: name "foo_bucket" can't be a metric's; ` + badNameRemedy},
		"a level's count": {oneRule("class: level\nname: foo_count"),
			`3:9: name "foo_count" can't be a level's; ` + badNameRemedy},
		"count of what may be a size": {oneRule("match: {class: [counter, size]}\nname: foo_count"),
			`3:9: name "foo_count" can't be a size's; ` + badNameRemedy},
		"short unit":       {oneRule("name: foo_ms"), `2:9: name "foo_ms" can't be a metric's; ` + badNameRemedy},
		"unit with a unit": {oneRule("class: level\nunit: By\nname: foo_count"), ""},
		"half a word":      {oneRule("match: {name: a_*}\nname: a_$1sum"), ""},
		"counter's count":  {oneRule("match: {class: size}\nclass: counter\nname: foo_count"), ""},
		"time in bytes": {oneRule("class: timer\nunit: By"), "3:9: \"By\" is no unit of a timer; " +
			"write s, ms, us, ns, min or h, or say by class what the variable really is"},
		"share in bytes": {oneRule("match: {class: percentage}\nunit: By"),
			"3:9: \"By\" is no unit of a percentage; write \"1\" or \"%\", or say by class what the variable really is"},
		"time of no unit": {oneRule("class: timer\nunit: none"), ""},
		"reserved name": {oneRule("name: exporter_foo"),
			`2:9: name "exporter_foo" can't be a metric's; ` + badNameRemedy},
		"star of none": {oneRule("match: {name: foo}\nname: x_$1"),
			`3:9: "x_$1": there is no group "1"; write $1 for the first * or group of the pattern`},
		"no group": {oneRule("match: {regexp: '(?P<a>.)(.)'}\nname: x_${b}"),
			`3:9: "x_${b}": there is no group "b"; write $1 for the first * or group of the pattern`},
		"dollar": {oneRule("match: {name: '*'}\nname: $x"),
			`3:9: "$x": a $ that no group follows; write $1 or ${group}`},
		"companion": {oneRule("match: {name: foo}\ncompanion: x_$1"),
			`3:14: "x_$1": there is no group "1"; write $1 for the first * or group of the pattern`},

		"label jobid": {oneRule("match: {regexp: '(?P<jobid>.)'}\ndrop: true"),
			`2:19: group "jobid": no label can have this name, or the exporter or Prometheus gives it; give the group another name, such as what`},
		"label comm": {oneRule("match: {regexp: '(?P<comm>.)'}\ndrop: true"),
			`2:19: group "comm": no label can have this name, or the exporter or Prometheus gives it; give the group another name, such as what`},
		"label __x": {oneRule("match: {regexp: '(?P<__x>.)'}\ndrop: true"),
			`2:19: group "__x": no label can have this name, or the exporter or Prometheus gives it; give the group another name, such as what`},
		"label 1x": {oneRule("match: {regexp: '(?P<1x>.)'}\ndrop: true"),
			`2:19: group "1x": no label can have this name, or the exporter or Prometheus gives it; give the group another name, such as what`},
		"label in name": {oneRule("match: {regexp: '(?P<rank>.)'}\nname: x_${rank}"), ""},
		"label twice": {oneRule("match: {regexp: '(?P<a>.)(?P<a>.)'}\ndrop: true"),
			`2:19: two groups are called "a"; give each its own name`},
		"many labels": {oneRule("match: {regexp: '" + manyGroups(17) + "'}\ndrop: true"),
			"2:19: 17 named groups would be labels; at most 16 may; use (?:…) for those that are to be no labels"},

		"nonzero": {oneRule("elements: sum\nnonzero: true"), ""},
		"limit of nothing": {"limits: {series: 0}",
			"1:18: the limit is 0; write a number from 1 to 1000000000, or leave it out for the default of 500000"},
		"limit below": {"limits:\n  series_per_rank: -1",
			"2:20: the limit is -1; write a number from 1 to 1000000000, or leave it out for the default of 20000"},
		"limit no number": {"limits: {series: 1.5}", "1:18: limits.series is 1.5; write a whole number"},
		"limit key":       {"limits: {series_per_jobs: 1}", "1: field series_per_jobs not found in type rules.Limits"},

		"source label": {"identity: [{source_labels: [job], target_label: jobid}]",
			"1:29: there is no source label \"job\"; write one of " + strings.Join(sourceLabels, ", ") + ", or env_<NAME> " +
				"for a variable of the environment"},
		"target": {"identity: [{source_labels: [user], target_label: rank}]",
			`1:50: the label "rank" can't be changed; write one of jobid, world, jobname, partition`},
		"no target": {"identity: [{source_labels: [user]}]", "1:12: this rule of identity has no target_label; " +
			"write target_label: one of jobid, world, jobname, partition"},
		"identity regexp": {"identity: [{source_labels: [user], target_label: jobid, regex: '*'}]",
			"1:64: bad regular expression \"*\": missing argument to repetition operator: `*`; write one of RE2's, " +
				"such as 'coll_(?P<function>[a-z]+)_time'"},
		"identity's keys": {"identity: [{source_label: [user], target: jobid, replacement: $2}]",
			"1: field source_label not found in type rules.Relabel\n1: field target not found in type rules.Relabel"},
		"constant": {"identity: [{target_label: partition, replacement: ''}]", ""},
		"from nowhere": {"identity: [{target_label: partition}]", "1:12: this rule of identity makes the label " +
			"empty, for it takes its value from nowhere; write source_labels, or a replacement"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("f.yaml", []byte(c.text))
			if c.want == "" {
				require.NoError(t, err)
				require.NotNil(t, f)
				return
			}
			require.Error(t, err)
			assert.Nil(t, f)
			assert.Equal(t, "f.yaml:"+strings.ReplaceAll(c.want, "\n", "\nf.yaml:"), err.Error())
		})
	}
}

func TestLargeFilesAreRefused(t *testing.T) {
	_, err := Parse("f.yaml", []byte("#"+strings.Repeat(" ", maxFile)))
	assert.EqualError(t, err, "f.yaml:1:1: the file has more than 1048576 bytes; share its rules out among several "+
		"files, or give the right file")
	_, err = Parse("f.yaml", []byte("rules:\n"+strings.Repeat("- drop: true\n", maxRules+1)))
	assert.EqualError(t, err, "f.yaml:2:1: 2001 rules; at most 2000 are read; write patterns that hold for many "+
		"variables at once")
	_, err = Parse("f.yaml", []byte("rules:\n"+strings.Repeat("- name: 'X'\n", maxRules)))
	var problems Problems
	require.ErrorAs(t, err, &problems)
	assert.Len(t, problems, maxRules)
	_, err = Parse("f.yaml", []byte(strings.Repeat("[", 20000)))
	assert.ErrorAs(t, err, &problems)
}

func TestProblemsCanBeListed(t *testing.T) {
	_, err := Parse("f.yaml", []byte("limits: {series: -1}\n"))
	var problems Problems
	require.ErrorAs(t, err, &problems)
	assert.Equal(t, Problems{{File: "f.yaml", Line: 1, Column: 18, What: "the limit is -1; write a number from 1 to " +
		"1000000000, or leave it out for the default of 500000"}}, problems)
}

// files writes rule files into a new directory.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestLoad(t *testing.T) {
	t.Run("defaults", func(t *testing.T) {
		s, err := Load(nil)
		require.NoError(t, err)
		assert.Equal(t, &Settings{Limits: Limits{500_000, 200_000, 250_000, 20_000, 2_000}, Rules: Defaults()}, s)
	})
	t.Run("files and directories in their order, the shipped rules last", func(t *testing.T) {
		dir := files(t, map[string]string{
			"own.conf": "\nrules: [{name: first}]\n",
			"d/20.yml": "rules: [{match: {name: c}, unit: s}]\nidentity: [{source_labels: [user], target_label: " +
				"partition}]\n",
			"d/10.yaml":            "rules: [{match: {name: b}, unit: s}]\nlimits: {series: 7}\n",
			"d/.hidden.yaml":       "no: file of rules\n",
			"d/notes.txt":          "no file of rules\n",
			"d/directory.yaml/x":   "\n",
			"d/deeper/ignored.yml": "no: file of rules\n",
		})
		s, err := Load([]string{filepath.Join(dir, "own.conf"), filepath.Join(dir, "d")})
		require.NoError(t, err)
		require.Len(t, s.Rules, 3+len(Defaults()))
		assert.Equal(t, Source{filepath.Join(dir, "own.conf"), 2}, s.Rules[0].Source)
		assert.Equal(t, Source{filepath.Join(dir, "d/10.yaml"), 1}, s.Rules[1].Source)
		assert.Equal(t, Source{filepath.Join(dir, "d/20.yml"), 1}, s.Rules[2].Source)
		assert.Equal(t, "defaults/calls.yaml", s.Rules[3].Source.File)
		assert.Equal(t, Limits{7, 200_000, 250_000, 20_000, 2_000}, s.Limits)
		assert.Len(t, s.Identity, 1)
	})
	t.Run("the first file that sets a limit wins", func(t *testing.T) {
		s, err := Load([]string{files(t, map[string]string{
			"a.yaml": "limits: {series: 10, series_per_job: 50}\n",
			"b.yaml": "limits: {series: 11, series_per_rank: 6}\n",
		})})
		require.NoError(t, err)
		assert.Equal(t, Limits{10, 50, 250_000, 6, 2_000}, s.Limits)
	})
	t.Run("rules of which an earlier one leaves nothing", func(t *testing.T) {
		dir := files(t, map[string]string{"a.yaml": "rules: [{drop: true}]\n", "b.yaml": "rules: [{drop: true}]\n"})
		_, err := Load([]string{dir, dir})
		assert.NoError(t, err)
	})
	t.Run("all problems of all files", func(t *testing.T) {
		dir := files(t, map[string]string{"a.yaml": "limits: {series: -1}\n", "b.yaml": "rules: [{unit: x}]\n", "e/x": ""})
		_, err := Load([]string{filepath.Join(dir, "b.yaml"), filepath.Join(dir, "none"), filepath.Join(dir, "e"),
			dir})
		require.Error(t, err)
		lines := strings.Split(err.Error(), "\n")
		require.Len(t, lines, 5)
		assert.Contains(t, lines[0], "b.yaml:1:16: unit")
		assert.Contains(t, lines[1], "none: stat: no such file or directory; give a rule file")
		assert.Contains(t, lines[2], "e: no file in this directory ends in .yaml or .yml; give a rule file")
		assert.Contains(t, lines[3], "a.yaml:1:18: the limit")
	})
	t.Run("no regular file", func(t *testing.T) {
		_, err := Load([]string{os.DevNull})
		assert.ErrorContains(t, err, "this is not a regular file")
		var problems Problems
		assert.True(t, errors.As(err, &problems))
	})
}
