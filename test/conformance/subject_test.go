package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// subject is a library with two programs that run on it for all checks: one whose agent talks to this test (the
// embedded rank), and one whose agent talks to an exporter. Checks leave both as they find them, except that
// variables' values and objects' numbers move on. What needs another library, or an end, starts a program of its own.
type subject struct {
	*rank
	name    string
	build   *fixture.Build
	library *fixture.Library // what the fixture has; empty for others
	mpi     *harness.MPI     // nil: the fixture
	page    *page
	truth   truth
	job     *job
	count   int // of objects made by checks

	variables  []mpit.Variable // that the library gave a name and a class, as the agent has listed them
	controls   []mpit.ControlVariable
	categories []mpit.Category
}

// rank is a program with the session that its agent has opened with this test.
type rank struct {
	*fixture.Program
	session  *mpit.Session
	listener *mpit.Listener
}

// page is a program with the exporter that its agent talks to.
type page struct {
	*fixture.Program
	exporter *harness.Exporter
	made     []string // communicators that class has made
}

func newFixture(t *testing.T) *subject {
	t.Helper()
	return newSubject(t, &subject{name: "Fixture", build: fixture.Plain(suite), library: everything()})
}

func newReal(t *testing.T, mpi *harness.MPI) *subject {
	t.Helper()
	name := map[string]string{"openmpi": "Open MPI", "mpich": "MPICH"}[mpi.Name]
	return newSubject(t, &subject{name: name, build: fixture.Real(suite, mpi), library: &fixture.Library{}, mpi: mpi})
}

func newSubject(t *testing.T, s *subject) *subject {
	t.Helper()
	s.rank = s.start(t, s.library, fixture.Options{Exec: []string{"--allow-write"}})
	exporter := suite.Exporter(t)
	s.page = &page{Program: fixture.Start(t, s.build, s.library,
		fixture.Options{Socket: exporter.Socket, Exec: s.monitoring()}), exporter: exporter}
	s.begin(t, s.page.Program)
	require.NoError(t, json.Unmarshal([]byte(s.Do(t, "tool-list")), &s.truth))
	for i := range s.truth.Cvars {
		s.truth.Cvars[i].control = true
	}
	s.list(t)
	return s
}

// monitoring are flags of exec that bring more variables.
func (s *subject) monitoring() []string {
	if s.mpi != nil && s.mpi.Name == "openmpi" {
		return []string{"--monitoring"}
	}
	return nil
}

// fixture says whether the library is the fixture.
func (s *subject) fixture() bool { return s.mpi == nil }

// start starts another program, after its MPI_Init, whose agent talks to this test.
func (s *subject) start(t *testing.T, library *fixture.Library, options fixture.Options) *rank {
	t.Helper()
	r := s.startBare(t, library, options)
	s.begin(t, r.Program)
	r.accept(t)
	return r
}

// begin calls MPI_Init_thread, or MPI_Init where the library has no windows for programs of several threads: Open MPI
// here.
func (s *subject) begin(t *testing.T, p *fixture.Program) {
	t.Helper()
	if s.mpi != nil && s.mpi.Name == "openmpi" {
		p.Do(t, "init")
		return
	}
	p.Init(t)
}

// monitoringOff is of programs that crash with Open MPI's monitoring.
const monitoringOff = "OMPI_MCA_pml_monitoring_enable=0"

// startBare starts one that hasn't called anything of MPI yet.
func (s *subject) startBare(t *testing.T, library *fixture.Library, options fixture.Options) *rank {
	t.Helper()
	listener, err := mpit.Listen(filepath.Join(suite.Dir(t), "agent.sock"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	options.Socket = listener.Path()
	if !slices.Contains(options.Env, monitoringOff) {
		options.Exec = append(s.monitoring(), options.Exec...)
	}
	return &rank{Program: fixture.Start(t, s.build, library, options), listener: listener}
}

// accept waits for the agent.
func (r *rank) accept(t *testing.T) {
	t.Helper()
	session, err := r.listener.Accept(within(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	r.session = session
}

// within bounds a wait.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := harness.Patient(t)
	t.Cleanup(cancel)
	return ctx
}

// list asks for everything that the agent lists.
func (s *subject) list(t *testing.T) {
	t.Helper()
	if v := s.sample(t).Variables; v != nil { // a library may have none
		s.variables = v.ByID
	}
	s.controls = s.cvars(t)
	var err error
	s.categories, _, err = s.session.Categories(within(t))
	require.NoError(t, err)
	s.categories = slices.DeleteFunc(s.categories, func(c mpit.Category) bool { return c.Name == eventCategory })
}

// sample reads a sample that has values.
func (r *rank) sample(t *testing.T) mpit.Sample {
	t.Helper()
	var sample mpit.Sample
	harness.Await(t, "a sample with values", func(ctx context.Context) error {
		var err error
		sample, err = r.session.Read(ctx)
		if err == nil && sample.Status == mpit.SampleBusy {
			err = fmt.Errorf("busy")
		}
		return err
	})
	return sample
}

func (r *rank) cvars(t *testing.T) []mpit.ControlVariable {
	t.Helper()
	list, err := r.session.ControlVariables(within(t))
	require.NoError(t, err)
	return list
}

// variable finds a variable in the rank's newest catalogue.
func (r *rank) variable(t *testing.T, name string, class mpit.Class) mpit.Variable {
	t.Helper()
	v, ok := r.sample(t).Variables.Find(name, class)
	require.True(t, ok, "no %v %q in the catalogue", class, name)
	return v
}

// control finds a control variable.
func (r *rank) control(t *testing.T, name string) mpit.ControlVariable {
	t.Helper()
	list := r.cvars(t)
	at := slices.IndexFunc(list, func(c mpit.ControlVariable) bool { return c.Name == name })
	require.GreaterOrEqual(t, at, 0, "no control variable %q", name)
	return list[at]
}

// handle finds the agent's handle of a variable on an object (0: none).
func handle(t *testing.T, sample mpit.Sample, variable, object uint32) mpit.Handle {
	t.Helper()
	for _, h := range sample.Layout.Handles {
		if h.Variable == variable && h.Object == object {
			return h
		}
	}
	require.Fail(t, "no handle", "variable %+v on object %d", sample.Variables.ByID[variable], object)
	return mpit.Handle{}
}

// values are those of a variable on an object, as numbers.
func values(t *testing.T, sample mpit.Sample, v mpit.Variable, object uint32) []float64 {
	t.Helper()
	h := handle(t, sample, v.ID, object)
	require.GreaterOrEqual(t, h.Offset, 0)
	for _, f := range sample.Failed {
		require.NotEqual(t, h.ID, f.Handle, "%s could not be read: %v", v.Name, f.Code)
	}
	return floats(v.Datatype, sample.Values[h.Offset:h.Offset+h.Count])
}

func floats(t mpit.Datatype, words []uint64) []float64 {
	list := make([]float64, len(words))
	for i, word := range words {
		list[i] = t.Float64(word)
	}
	return list
}

// object finds the only object of a kind and name.
func (r *rank) object(t *testing.T, kind mpit.Bind, name string) mpit.Object {
	t.Helper()
	var found []mpit.Object
	for _, o := range r.sample(t).Layout.Objects {
		if o.Kind == kind && o.Name == name {
			found = append(found, o)
		}
	}
	require.Len(t, found, 1, "objects of kind %v named %q", kind, name)
	return found[0]
}

// newest finds the object of a kind that came last.
func (r *rank) newest(t *testing.T, kind mpit.Bind) mpit.Object {
	t.Helper()
	var newest mpit.Object
	for _, o := range r.sample(t).Layout.Objects {
		if o.Kind == kind && o.ID > newest.ID {
			newest = o
		}
	}
	require.NotZero(t, newest.ID, "no object of kind %v", kind)
	return newest
}

// finish ends the subject's programs: the library has nothing to complain about, whatever was done to it.
func (s *subject) finish(t *testing.T) {
	t.Helper()
	for _, p := range []*fixture.Program{s.Program, s.page.Program} {
		s.end(t, p)
	}
}

// end ends a program regularly.
func (s *subject) end(t *testing.T, p *fixture.Program) {
	t.Helper()
	if s.fixture() {
		p.Finish(t)
		return
	}
	p.Do(t, "finalize")
	p.End(t, "exit 0", 0)
}
