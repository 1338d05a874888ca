package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// What the MPI handle debugging interface lists and we don't tell, with the reasons.
const (
	noWorldRanks = "Groups would have to be translated at every constructor, at the program's expense, which is " +
		"long with many processes."
	noEdges      = "An unbounded list. The numbers of nodes and edges are shown."
	noReorder    = "MPI doesn't say whether it has reordered."
	noAttributes = "Attributes are the program's own; their values mean nothing to anybody else."
	noHandle     = "A handle means nothing outside the process."
	noPending    = "A freed object has no handle to ask for, and MPI doesn't say why it is still kept."
	noRequests   = "Knowing them would mean intercepting message calls."
	noSync       = "Knowing it would mean intercepting every synchronisation of one-sided communication."
	noPosition   = "It changes with every access: knowing it would mean intercepting reads and writes. The same " +
		"goes for the view."
	noTypeMap  = "A type map is unbounded. Combiner, size and extent are shown."
	noAttached = "MPI doesn't say on which objects a handler is set."
	noMembers  = "An unbounded list. Size and own rank are shown."
	noStatus   = "A status is part of the program's memory, not an object that MPI knows."
	noFunction = "An address in the process, which means nothing outside it."
)

// details are the keys that objects of a kind may have (docs/internals/protocol.md, Objects): that others are not told
// is asserted with these.
var details = map[mpit.Bind][]string{
	mpit.BindComm:       {"remote_size", "topology", "dims", "periods", "nodes", "edges", "indegree", "outdegree"},
	mpit.BindWin:        {"base", "bytes", "disp_unit", "flavor", "model"},
	mpit.BindFile:       {"mode"},
	mpit.BindDatatype:   {"bytes", "extent", "lb", "combiner"},
	mpit.BindErrhandler: {"on"},
	mpit.BindOp:         {"commutative"},
	mpit.BindRequest:    {"operation"},
	mpit.BindInfo:       {"keys"},
}

// untold asserts that an object of a kind tells nothing beyond what is listed.
func untold(kind mpit.Bind, reason string) check {
	return func(t *testing.T, s *subject) outcome {
		_, o, free := s.made(t, kind)
		for _, d := range o.Details {
			assert.Contains(t, details[kind], d.Key)
		}
		free()
		return notSupported(reason)
	}
}

// gone asserts that what is freed is no longer listed.
func gone(kind mpit.Bind) check {
	return func(t *testing.T, s *subject) outcome {
		_, o, free := s.made(t, kind)
		free()
		assertGone(t, s, o)
		return notSupported(noPending)
	}
}

func detail(o mpit.Object, key string) string {
	for _, d := range o.Details {
		if d.Key == key {
			return d.Value
		}
	}
	return ""
}

// ended frees an object made with the driver's command; more are freed after it.
func (s *subject) frees(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		s.Free(t, name)
	}
}

// tells makes an object with a command and compares what is told of it.
func tells(kind mpit.Bind, command string, want map[string]string) check {
	return func(t *testing.T, s *subject) outcome {
		o, ok := s.commanded(t, kind, command)
		if !ok {
			return notOffered
		}
		for key, value := range want {
			assert.Equal(t, value, detail(o, key), "%s of %+v", key, o)
		}
		s.Free(t, "told")
		assertGone(t, s, o)
		return works
	}
}

// commanded makes an object that the test calls "told"; false: it needs MPI-4, which the library doesn't have.
func (s *subject) commanded(t *testing.T, kind mpit.Bind, command string) (mpit.Object, bool) {
	t.Helper()
	if _, err := s.Try(t, "%s", command); err != nil {
		require.Equal(t, "none", s.Do(t, "tool-events"), "%s: %v", command, err)
		return mpit.Object{}, false
	}
	return s.newest(t, kind), true
}

// rank and size of MPI_COMM_WORLD.
func (s *subject) world() (rank, size int) {
	if s.fixture() {
		return 1, fixture.World
	}
	return 0, 1
}

func communicators() section {
	kind := mpit.BindComm
	return section{"Objects: communicators", []feature{
		{"name", func(t *testing.T, s *subject) outcome {
			name, o, free := s.made(t, kind)
			assert.Empty(t, o.Name)
			for _, text := range []string{"first name", "second"} {
				s.Name(t, name, text)
				assert.Equal(t, text, s.newest(t, kind).Name)
			}
			free()
			return works
		}},
		{"predefined", func(t *testing.T, s *subject) outcome {
			_, o, free := s.made(t, kind)
			assert.False(t, o.Predefined)
			for _, name := range []string{"MPI_COMM_WORLD", "MPI_COMM_SELF"} {
				assert.True(t, s.object(t, kind, name).Predefined)
			}
			free()
			return works
		}},
		{"size and rank", func(t *testing.T, s *subject) outcome {
			rank, size := s.world()
			world, self := s.object(t, kind, "MPI_COMM_WORLD"), s.object(t, kind, "MPI_COMM_SELF")
			assert.Equal(t, []int{size, rank, 1, 0}, []int{world.Size, world.Rank, self.Size, self.Rank})
			return works
		}},
		{"intercommunicator, remote size", intercommunicator},
		{"world ranks of the local and remote processes", untold(kind, noWorldRanks)},
		{"Cartesian: dimensions and periods", func(t *testing.T, s *subject) outcome {
			dims := "1,1"
			if s.fixture() {
				dims = "2,2"
			}
			return tells(kind, "comm-cart world told "+dims+" 1,0",
				map[string]string{"topology": "cart", "dims": dims, "periods": "1,0"})(t, s)
		}},
		{"graph: numbers of nodes and edges", func(t *testing.T, s *subject) outcome {
			if s.fixture() {
				return tells(kind, "comm-graph world told 2,3 1,0,0",
					map[string]string{"topology": "graph", "nodes": "2", "edges": "3"})(t, s)
			}
			return tells(kind, "comm-graph world told 1 0",
				map[string]string{"topology": "graph", "nodes": "1", "edges": "1"})(t, s)
		}},
		{"graph: its edges", untold(kind, noEdges)},
		{"distributed graph: degrees", func(t *testing.T, s *subject) outcome {
			if s.fixture() {
				return tells(kind, "comm-dist-graph world told 0,2 3",
					map[string]string{"topology": "dist_graph", "indegree": "2", "outdegree": "1"})(t, s)
			}
			return tells(kind, "comm-dist-graph world told 0 0",
				map[string]string{"topology": "dist_graph", "indegree": "1", "outdegree": "1"})(t, s)
		}},
		{"topology: reordered", untold(kind, noReorder)},
		{"attributes", untold(kind, noAttributes)},
		{"C and Fortran handle", untold(kind, noHandle)},
		{"freed, but pending", gone(kind)},
		{"pending requests", untold(kind, noRequests)},
		{"windows derived from it", derived(mpit.BindWin, "win-allocate parent told 64 8")},
		{"files derived from it", derived(mpit.BindFile, "file-open parent told %s rdwr,create")},
		{"persistent requests on it", derived(mpit.BindRequest, "request-init recv parent told")},
		{"on `mpit_object_info`", onPage},
	}}
}

// intercommunicator: the fixture imagines the other side; a real one needs two processes.
func intercommunicator(t *testing.T, s *subject) outcome {
	if s.fixture() {
		o, _ := s.commanded(t, mpit.BindComm, "intercomm self world told")
		assert.True(t, o.Inter)
		assert.Equal(t, 1, o.Size)
		assert.Equal(t, fmt.Sprint(fixture.World), detail(o, "remote_size"))
		s.Free(t, "told")
		_, intra, free := s.made(t, mpit.BindComm)
		assert.False(t, intra.Inter)
		assert.Empty(t, detail(intra, "remote_size"))
		free()
		return works
	}
	exporter := suite.Exporter(t)
	run := suite.Run(t, harness.Job{MPI: s.mpi, Ranks: 2, Program: "inter.c", Args: []string{harness.HoldDir},
		Socket: exporter.Socket})
	run.AtHold(t, "made")
	exporter.Await(t, "the bridge", func(p *harness.Scrape) error {
		for rank := range 2 {
			if err := p.Expect("mpit_object_info", run.Labels(rank).With("name", "bridge").With("inter",
				"true").With("size", "1").With("remote_size", "1"), 1); err != nil {
				return err
			}
		}
		return nil
	})
	run.Finish(t, "made")
	return works
}

// derived: what was made on a communicator names it.
func derived(kind mpit.Bind, command string) check {
	return func(t *testing.T, s *subject) outcome {
		s.Do(t, "comm-dup world parent")
		parent := s.newest(t, mpit.BindComm)
		if strings.Contains(command, "%s") {
			command = fmt.Sprintf(command, fixture.Quote(filepath.Join(suite.Dir(t), "file")))
		}
		o, _ := s.commanded(t, kind, command)
		assert.Equal(t, parent.ID, o.On)
		s.frees(t, "told", "parent")
		return works
	}
}

// onPage: objects of a unique name have their details as labels.
func onPage(t *testing.T, s *subject) outcome {
	p := s.page
	rank, _ := s.world()
	p.Do(t, "comm-cart world grid 1,1 0,1")
	_, size := s.world()
	if size > 1 { // a rank that isn't in it has nothing to show
		p.Do(t, "comm-dup self lone")
		p.Do(t, "comm-cart lone grid 1,1 0,1")
		rank = 0
	}
	p.Do(t, "set-name grid \"the grid\"")
	p.exporter.Await(t, "its details", func(page *harness.Scrape) error {
		return page.Expect("mpit_object_info", p.Labels().With("name", "the grid").With("kind", "comm").With("size",
			"1").
			With("object_rank", fmt.Sprint(rank)).With("topology", "cart").With("dims", "1,1").With("periods",
			"0,1"), 1)
	})
	p.Do(t, "free grid")
	return works
}

func windows() section {
	kind := mpit.BindWin
	flavors := func(flavor, command string) feature {
		return feature{"flavour " + flavor, tells(kind, command, map[string]string{"flavor": flavor})}
	}
	return section{"Objects: windows", []feature{
		{"name", func(t *testing.T, s *subject) outcome {
			name, o, free := s.made(t, kind)
			assert.Empty(t, o.Name)
			s.Name(t, name, "halo")
			assert.Equal(t, "halo", s.newest(t, kind).Name)
			free()
			return works
		}},
		{"base", func(t *testing.T, s *subject) outcome {
			o, _ := s.commanded(t, kind, "win-create world told 64 8")
			assert.Regexp(t, "^0x[0-9a-f]{6,16}$", detail(o, "base"))
			s.Free(t, "told")
			return works
		}},
		{"size and displacement unit", tells(kind, "win-create world told 72 8",
			map[string]string{"bytes": "72", "disp_unit": "8"})},
		flavors("create", "win-create world told 64 8"),
		flavors("allocate", "win-allocate world told 64 8"),
		flavors("shared", "win-allocate-shared world told 64 8"),
		flavors("dynamic", "win-create-dynamic world told"),
		{"memory model", func(t *testing.T, s *subject) outcome {
			_, o, free := s.made(t, kind)
			assert.Contains(t, []string{"separate", "unified"}, detail(o, "model"))
			free()
			return works
		}},
		{"its communicator", derived(kind, "win-create parent told 64 8")},
		{"group: size and rank", func(t *testing.T, s *subject) outcome {
			_, o, free := s.made(t, kind)
			rank, size := s.world()
			assert.Equal(t, []int{size, rank}, []int{o.Size, o.Rank})
			free()
			return works
		}},
		{"state of synchronisation", untold(kind, noSync)},
		{"attributes", untold(kind, noAttributes)},
		{"C and Fortran handle", untold(kind, noHandle)},
		{"freed, but pending", gone(kind)},
	}}
}

func files() section {
	kind := mpit.BindFile
	return section{"Objects: files", []feature{
		{"name", func(t *testing.T, s *subject) outcome {
			path := filepath.Join(suite.Dir(t), "a file")
			o, _ := s.commanded(t, kind, "file-open world told "+fixture.Quote(path)+" rdwr,create")
			assert.Equal(t, path, o.Name)
			s.Free(t, "told")
			return works
		}},
		{"mode", func(t *testing.T, s *subject) outcome {
			path := fixture.Quote(filepath.Join(suite.Dir(t), "file"))
			for _, mode := range []string{"rdwr,create", "wronly,append", "rdonly", "rdwr,delete_on_close"} {
				o, _ := s.commanded(t, kind, "file-open world told "+path+" "+mode)
				assert.ElementsMatch(t, strings.Split(mode, ","), strings.Split(detail(o, "mode"), ","))
				s.Free(t, "told")
			}
			return works
		}},
		{"its communicator", derived(kind, "file-open parent told %s rdwr,create")},
		{"position and view", untold(kind, noPosition)},
		{"pending requests", untold(kind, noRequests)},
		{"C and Fortran handle", untold(kind, noHandle)},
		{"freed, but pending", gone(kind)},
	}}
}

func datatypeObjects() section {
	kind := mpit.BindDatatype
	return section{"Objects: datatypes", []feature{
		{"name", func(t *testing.T, s *subject) outcome {
			name, _, free := s.made(t, kind)
			s.Name(t, name, "particle")
			assert.Equal(t, "particle", s.newest(t, kind).Name)
			free()
			return works
		}},
		{"size, extent, lower bound", func(t *testing.T, s *subject) outcome {
			s.Do(t, "type-contiguous base 3")
			s.Do(t, "type-resized base told -8 40")
			s.Do(t, "type-commit told")
			o := s.newest(t, kind)
			assert.Equal(t, []string{"12", "40", "-8", "resized"},
				[]string{detail(o, "bytes"), detail(o, "extent"), detail(o, "lb"), detail(o, "combiner")})
			s.frees(t, "told", "base")
			return works
		}},
		{"combiner", func(t *testing.T, s *subject) outcome {
			for combiner, command := range map[string]string{"contiguous": "type-contiguous told 5",
				"vector": "type-vector told 3 2 4"} {
				s.Do(t, "%s", command)
				s.Do(t, "type-commit told")
				o := s.newest(t, kind)
				assert.Equal(t, combiner, detail(o, "combiner"))
				s.Free(t, "told")
				assertGone(t, s, o)
			}
			return works
		}},
		{"type map", untold(kind, noTypeMap)},
		{"attributes", untold(kind, noAttributes)},
		{"C and Fortran handle", untold(kind, noHandle)},
		{"freed, but pending", gone(kind)},
	}}
}

func otherObjects() section {
	var features []feature
	for _, on := range []string{"comm", "win", "file", "session"} {
		features = append(features, feature{"error handler: for " + on,
			tells(mpit.BindErrhandler, "errhandler-create "+on+" told", map[string]string{"on": on})})
	}
	features = append(features,
		feature{"error handler: its function", untold(mpit.BindErrhandler, noFunction)},
		feature{"error handler: the objects that have it", untold(mpit.BindErrhandler, noAttached)},
		feature{"operator: commutative", func(t *testing.T, s *subject) outcome {
			tells(mpit.BindOp, "op-create told 1", map[string]string{"commutative": "true"})(t, s)
			return tells(mpit.BindOp, "op-create told 0", map[string]string{"commutative": "false"})(t, s)
		}},
		feature{"operator: its function", untold(mpit.BindOp, noFunction)},
		feature{"group: size and rank", func(t *testing.T, s *subject) outcome {
			_, o, free := s.made(t, mpit.BindGroup)
			rank, size := s.world()
			assert.Equal(t, []int{size, rank}, []int{o.Size, o.Rank})
			free()
			return works
		}},
		feature{"group: members", untold(mpit.BindGroup, noMembers)},
	)
	for _, operation := range []string{"send", "bsend", "rsend", "ssend", "recv", "psend", "precv", "barrier",
		"bcast", "allreduce"} {
		features = append(features, feature{"request: persistent or partitioned, " + code(operation+"_init"),
			tells(mpit.BindRequest, "request-init "+operation+" self told",
				map[string]string{"operation": operation + "_init"})})
	}
	return section{"Objects: others", append(features,
		feature{"request: of one operation, its peer, tag, buffer and state", func(t *testing.T, s *subject) outcome {
			_, o, free := s.made(t, mpit.BindRequest)
			assert.Len(t, o.Details, 1)
			free()
			return notSupported(noRequests)
		}},
		feature{"info: keys", infoKeys},
		feature{"message", func(t *testing.T, s *subject) outcome {
			for _, o := range s.sample(t).Layout.Objects {
				assert.NotEqual(t, mpit.BindMessage, o.Kind)
			}
			return notSupported(noMessages)
		}},
		feature{"MPI-4 session", tells(mpit.BindSession, "session-init told", nil)},
		feature{"status", func(t *testing.T, s *subject) outcome {
			kinds := []mpit.Bind{}
			for _, o := range s.sample(t).Layout.Objects {
				if !slices.Contains(kinds, o.Kind) {
					kinds = append(kinds, o.Kind)
				}
			}
			assert.Subset(t, fixture.Binds, kinds)
			return notSupported(noStatus)
		}},
	)}
}

func infoKeys(t *testing.T, s *subject) outcome {
	keys := func() string { return detail(s.newest(t, mpit.BindInfo), "keys") }
	s.Do(t, "info-create told")
	assert.Empty(t, keys())
	s.Do(t, "info-set told cb_nodes 4")
	assert.Equal(t, "cb_nodes", keys())
	s.Do(t, "info-set told striping_unit 65536")
	s.Do(t, "info-dup told copy")
	o := s.newest(t, mpit.BindInfo)
	assert.ElementsMatch(t, []string{"cb_nodes", "striping_unit"}, strings.Split(detail(o, "keys"), ","))
	s.Do(t, "info-delete copy cb_nodes")
	assert.Equal(t, "striping_unit", keys())
	s.frees(t, "copy", "told")
	assertGone(t, s, o)
	return works
}
