package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
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

// Every example passes the check alone, and all of them together do.
func TestConfigCheckExamples(t *testing.T) {
	const examples = "../../examples/rules"
	files, err := filepath.Glob(examples + "/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range append(files, examples) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got := runBinary(t, nil, "config", "check", path)
			assert.Equal(t, 0, got.status, got.stderr)
		})
	}
}

// The shipped files stand there as they are.
func TestConfigShow(t *testing.T) {
	got := runBinary(t, nil, "config", "show")
	require.Equal(t, 0, got.status, got.stderr)
	names, err := fs.Glob(rules.DefaultFiles(), "*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		text, err := fs.ReadFile(rules.DefaultFiles(), name)
		require.NoError(t, err)
		assert.Contains(t, got.stdout, "# ---- "+name+"\n"+string(text))
	}
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
			"Over OTLP it is mpit.pml_monitoring.bytes.total.",
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
		{[]string{}, "must select a subcommand of 'config' (see mpit-exporter config --help)"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			got := runBinary(t, nil, append([]string{"config"}, test.args...)...)
			assert.Equal(t, outcome{stderr: cli.ProgramName + ": " + test.want + "\n", status: cli.Usage}, got)
		})
	}
}
