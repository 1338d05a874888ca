package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/explain"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// writeFiles writes files into a new directory; what they are called may contain directories.
func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

const (
	goodRules = "rules:\n- match: {name: calls}\n  drop: true\n- match: {name: depth}\n  unit: \"{message}\"\n"
	badRules1 = "rules:\n  - match: {name: calls}\n    dorp: true\n  - match: {kind: timer}\n    unit: s\n"
	badRules2 = "limits: {series: many}\n"
)

func TestConfigCheck(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"good.yaml": goodRules, "bad1.yaml": badRules1, "bad2.yaml": badRules2,
		"limits.yaml": "limits: {series: 1000, series_per_job: 1000, series_per_user: 1000, series_per_rank: 1000, " +
			"series_per_variable: 10}\n",
		"rules.d/b.yml": "rules:\n- match: {name: x}\n  drop: true\n", "rules.d/a.yaml": goodRules,
		"rules.d/.hidden.yaml": badRules1, "rules.d/README": "no",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, test := range []struct {
		name   string
		args   []string
		status int
		stdout string
		stderr []string // how each of its lines begins
	}{
		{"one file", []string{at("good.yaml")}, 0, "2 rules of 1 file: all is well\n", nil},
		{"no rules", []string{at("limits.yaml")}, 0, "0 rules of 1 file: all is well\n", nil},
		{"a directory", []string{at("rules.d")}, 0, "3 rules of 2 files: all is well\n", nil},
		{"all mistakes of all files", []string{at("bad1.yaml"), at("good.yaml"), at("bad2.yaml")}, cli.Failure, "",
			[]string{
				at("bad1.yaml") + ":3:", at("bad1.yaml") + ":4:", at("bad2.yaml") + ":1:",
			}},
		{"no such file", []string{at("none.yaml"), at("bad2.yaml")}, cli.Failure, "",
			[]string{at("none.yaml") + ": ", at("bad2.yaml") + ":1:"}},
		{"nothing", nil, cli.Usage, "", []string{cli.ProgramName + ": required argument 'file' not provided"}},
		{"an unset variable", []string{""}, cli.Usage, "",
			[]string{cli.ProgramName + ": config check: the name of a file is empty"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runBinary(t, nil, append([]string{"config", "check"}, test.args...)...)
			assert.Equal(t, test.status, got.status)
			assert.Equal(t, test.stdout, got.stdout)
			lines := strings.FieldsFunc(got.stderr, func(r rune) bool { return r == '\n' })
			if assert.Len(t, lines, len(test.stderr), got.stderr) {
				for i, want := range test.stderr {
					assert.Truef(t, strings.HasPrefix(lines[i], want), "%q begins with %q", lines[i], want)
				}
			}
		})
	}
}

// Every example passes the check alone, and all of them together do. What is in force with each is a good file as
// well.
func TestConfigCheckExamples(t *testing.T) {
	const examples = "../../examples/rules"
	files, err := filepath.Glob(examples + "/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range append(files, examples) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got := runBinary(t, nil, "config", "check", path)
			assert.Equal(t, 0, got.status, got.stderr)
			shown := runBinary(t, nil, "config", "show", "--config.file", path)
			require.Equal(t, 0, shown.status, shown.stderr)
			inForce := filepath.Join(writeFiles(t, map[string]string{"shown.yaml": shown.stdout}), "shown.yaml")
			got = runBinary(t, nil, "config", "check", inForce)
			assert.Equal(t, 0, got.status, got.stderr)
		})
	}
}

// The shipped files stand there with their comments, and the output is a rule file that says the same.
func TestConfigShow(t *testing.T) {
	got := runBinary(t, nil, "config", "show")
	require.Equal(t, 0, got.status, got.stderr)
	names, err := fs.Glob(rules.DefaultFiles(), "*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		assert.Contains(t, got.stdout, "\n  # ---- "+name+"\n")
		text, err := fs.ReadFile(rules.DefaultFiles(), name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				assert.Contains(t, got.stdout, strings.TrimSpace(line))
			}
		}
	}
	file, err := rules.Parse("shown", []byte(got.stdout))
	require.NoError(t, err)
	assert.Equal(t, withoutSources(rules.Defaults()), withoutSources(file.Rules))
	assert.Equal(t, got, runBinary(t, nil, "config", "show", "--defaults"))
}

func withoutSources(all []rules.Rule) []rules.Rule {
	out := make([]rules.Rule, len(all))
	for i, r := range all {
		r.Source = rules.Source{}
		out[i] = r
	}
	return out
}

// TestConfigShowEffective: of one's own files and the shipped ones, in the order in which they hold, whatever the
// style in which they are written. It passes the check again, and says the same.
func TestConfigShowEffective(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"deep.yaml": "# mine\n\nrank: node\nrules:\n\n      # far to the right\n      - match:\n          name: " +
			"'deep*'\n        help: |\n          Two\n            lines.\n        drop: false\nlimits:\n  series: " +
			"400000\n",
		"flush.yaml": "rules:\n# at the edge\n- match: {name: calls}\n  drop: true # why\n\n- match: {library: " +
			"[openmpi, mpich], class: [level, size]}\n  unit: By\nidentity:\n- source_labels: [user]\n  " +
			"target_label: jobname\n",
		"flow.yaml": "rules: [{match: {name: a}, drop: true}, {match: {name: b}, scale: 2}]\n",
		"json.yaml": `{"rules": [{"match": {"name": "j"}, "drop": true}]}`,
		"over.yaml": "rules:\n- match: {library: openmpi, name: pml_ob1_posted_recvq_length, class: size}\n  class: " +
			"level\n  unit: \"{call}\"\n  name: posted\n  elements: max\n",
		"none.yaml": "# nothing yet\n",
	})
	var flags, paths []string
	for _, name := range []string{"deep.yaml", "flush.yaml", "flow.yaml", "json.yaml", "over.yaml", "none.yaml"} {
		paths = append(paths, filepath.Join(dir, name))
		flags = append(flags, "--config.file="+filepath.Join(dir, name))
	}
	got := runBinary(t, nil, append([]string{"config", "show"}, flags...)...)
	require.Equal(t, 0, got.status, got.stderr)
	assert.Contains(t, got.stdout, "\n  # ---- "+paths[0]+"\n  # mine\n  # far to the right\n  - match:\n"+
		"      name: 'deep*'\n    help: |\n      Two\n        lines.\n    drop: false\n")
	assert.Contains(t, got.stdout, "\n  # at the edge\n  - match: {name: calls}\n    drop: true # why\n")

	shown := filepath.Join(t.TempDir(), "shown.yaml")
	require.NoError(t, os.WriteFile(shown, []byte(got.stdout), 0o600))
	check := runBinary(t, nil, "config", "check", shown)
	assert.Equal(t, 0, check.status, check.stderr)

	want, err := rules.Load(paths)
	require.NoError(t, err)
	have, err := rules.Load([]string{shown})
	require.NoError(t, err)
	assert.Equal(t, want.Rank, have.Rank)
	assert.Equal(t, want.Limits, have.Limits)
	require.Len(t, have.Identity, 1)
	assert.Equal(t, want.Identity[0].TargetLabel, have.Identity[0].TargetLabel)
	// What is shown has the shipped rules behind it once more.
	assert.Equal(t, withoutSources(append(want.Rules, rules.Defaults()...)), withoutSources(have.Rules))

	low := filepath.Join(writeFiles(t, map[string]string{"low.yaml": "limits: {series: 1000}\n"}), "low.yaml")
	got = runBinary(t, nil, "config", "show", "--config.file="+low)
	require.NoError(t, os.WriteFile(shown, []byte(got.stdout), 0o600))
	have, err = rules.Load([]string{shown})
	require.NoError(t, err, "the defaults of parts, where the whole has less")
	assert.Equal(t, rules.Limits{Series: 1000, SeriesPerUser: 1000, SeriesPerJob: 1000, SeriesPerRank: 1000,
		SeriesPerVariable: 1000}, have.Limits)

	both := runBinary(t, nil, append([]string{"config", "show", "--defaults"}, flags...)...)
	assert.Equal(t, outcome{status: cli.Usage, stderr: cli.ProgramName + ": config show: --defaults shows the " +
		"shipped rules alone; it can't be used with --config.file\n"}, both)
	bad := filepath.Join(writeFiles(t, map[string]string{"bad.yaml": badRules1}), "bad.yaml")
	assert.Equal(t, cli.Failure, runBinary(t, nil, "config", "show", "--config.file="+bad).status)
}

func TestConfigExplain(t *testing.T) {
	dir := writeFiles(t, map[string]string{"mine.yaml": "rules:\n- match: {name: my_*, class: level, verbosity: " +
		"user_all}\n  name: warm_$1\n- match: {name: my_*, class: level}\n  unit: KiBy\n- match: {name: gone}\n  drop: " +
		"true\n"})
	mine := filepath.Join(dir, "mine.yaml")
	file := "--config.file=" + mine
	for _, test := range []struct {
		name string
		args []string
		want []string // lines, with any number of blanks between their words
		not  []string
	}{
		{"a rule that is shipped", []string{"pml_monitoring_messages_size", "--class=size", "--library=openmpi",
			"--bind=comm"}, []string{
			"pml_monitoring_messages_size of class SIZE, MPI_UNSIGNED_LONG_LONG",
			"unit defaults/openmpi.yaml:25 By",
			"all else its class -",
		}, []string{"scale", "buckets"}},
		{"a rule of one's own", []string{"my_fire", "--class=level", "--bind=comm", "--datatype=int",
			"--verbosity=user_all", "--library=mpich", "--library-version=4.2", file}, []string{
			"my_fire of class LEVEL, MPI_INT",
			"name " + mine + ":2 warm_fire",
			"unit " + mine + ":4 KiBy",
		}, []string{"These rules may"}},
		{"the same without verbosity", []string{"my_fire", "--class=level", "--library=mpich", file}, []string{
			"These rules may decide something, too; it depends on library, version or verbosity:", mine + ":2",
		}, []string{"warm_fire"}},
		{"without the library", []string{"pml_ob1_posted_recvq_length", "--class=size"}, []string{
			"These rules may decide something, too; it depends on library, version or verbosity:",
			"defaults/openmpi.yaml:9",
		}, nil},
		{"what is left out", []string{"gone", "--class=counter", "--library=mpich", file},
			[]string{"It is left out (rule).", "drop " + mine + ":6 true"}, []string{"scale"}},
		{"what the agent itself measures", []string{"mpit_call_time_MPI_Send", "--class=timer", "--bind=comm"}, []string{
			"mpit_call_time_MPI_Send of class TIMER, MPI_UINT64_T",
			"name defaults/calls.yaml:5 call_time", "class the agent timer", "unit the agent s",
			`labels defaults/calls.yaml:5 function="MPI_Send"`,
		}, []string{"object"}},
		{"sizes that the agent itself counts", []string{"mpit_call_size_MPI_Send", "--class=aggregate", "--bind=comm"},
			[]string{
				"mpit_call_size_MPI_Send of class AGGREGATE, MPI_UINT64_T",
				"class the agent aggregate", "unit the agent By",
			}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runBinary(t, nil, append([]string{"config", "explain"}, test.args...)...)
			require.Equal(t, 0, got.status, got.stderr)
			assert.Empty(t, got.stderr)
			var lines []string
			for line := range strings.Lines(got.stdout) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			for _, want := range test.want {
				assert.Contains(t, lines, want)
			}
			for _, not := range test.not {
				assert.NotContains(t, got.stdout, not)
			}
		})
	}
}

func TestConfigExplainJSON(t *testing.T) {
	got := runBinary(t, nil, "config", "explain", "pml_ob1_posted_recvq_length", "--class=size", "--library=openmpi",
		"--output=json")
	require.Equal(t, 0, got.status, got.stderr)
	var a explain.Answer
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &a))
	assert.Equal(t, []string{"pml_ob1_posted_recvq_length", "size", "MPI_UNSIGNED_LONG_LONG", "gauge"},
		[]string{a.Name, a.Class, a.Datatype, a.Metric.Type})
	assert.Contains(t, a.Metric.Help, "pml_ob1_posted_recvq_length")
	assert.Contains(t, a.Decisions, rules.Decision{Property: "class", By: "defaults/openmpi.yaml:9", Value: "level"})
}

// TestConfigMistakes: each says what is allowed.
func TestConfigMistakes(t *testing.T) {
	const help = " (see mpit-exporter config explain --help)"
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"explain", "--class=level"}, "required argument 'pvar' not provided (see mpit-exporter config explain --help)"},
		{[]string{"explain", "x"}, "required flag(s) '--class' not provided (see mpit-exporter config explain --help)"},
		{[]string{"explain", "coll_*", "--class=level"},
			`config explain: "coll_*": the name of one variable is needed, without * and ?; mpit-exporter list shows what there is`},
		{[]string{"explain", "", "--class=level"}, "config explain: the name of a performance variable is needed"},
		{[]string{"explain", "x", "--class=gauge"}, "--class: enum value must be one of state,level,size,percentage," +
			"highwatermark,lowwatermark,counter,aggregate,timer,generic, got 'gauge'" + help},
		{[]string{"explain", "x", "--library=mpi"}, "--library: enum value must be one of openmpi,mpich,mvapich," +
			"intelmpi,craympich, got 'mpi'" + help},
		{[]string{"explain", "x", "--class=level", "--library=mpich", "--library-version=new"},
			`config explain: --library-version "new": a version such as 4.1.4 is needed`},
		{[]string{"explain", "x", "--bind=object"}, "--bind: enum value must be one of comm,datatype,errhandler,file," +
			"group,op,request,win,message,info,session,none, got 'object'" + help},
		{[]string{"explain", "x", "--verbosity=loud"}, "--verbosity: enum value must be one of user_basic,user_detail," +
			"user_all,tuner_basic,tuner_detail,tuner_all,mpidev_basic,mpidev_detail,mpidev_all, got 'loud'" + help},
		{[]string{"explain", "x", "--datatype=string"}, "--datatype: enum value must be one of int,unsigned," +
			"unsigned_long,unsigned_long_long,count,char,double,int32_t,int64_t,uint32_t,uint64_t,long,long_long,float," +
			"c_bool, got 'string'" + help},
		{[]string{"explain", "x", "--class=level", "--config.file="}, "config explain: --config.file: the name of a file is empty"},
		{[]string{"explain", "x", "--output=table"}, "--output: enum value must be one of text,json, got 'table' " +
			"(see mpit-exporter config explain --help)"},
		{[]string{}, "must select a subcommand of 'config' (see mpit-exporter config --help)"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			got := runBinary(t, nil, append([]string{"config"}, test.args...)...)
			assert.Equal(t, outcome{stderr: cli.ProgramName + ": " + test.want + "\n", status: cli.Usage}, got)
		})
	}
}
