package exporter

import (
	"fmt"
	"math"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// FuzzExposition renders whatever a rank can say and parses it back: a page of text and one of protobuf have the same
// series with the same labels, values and help, and are whole.
func FuzzExposition(f *testing.F) {
	f.Add("calls", "All \"of\" them.\nEach \\ one.", "halo", "17", uint8(6), uint8(4), uint64(10))
	f.Add("", "", "", "", uint8(0), uint8(7), uint64(math.MaxUint64))
	f.Add("time\x00", "\xff", "\n\"}", "\r\u2028", uint8(8), uint8(7), math.Float64bits(1e300))
	f.Add("mpit_rank_up", "# EOF", "# HELP x y", "{}", uint8(1), uint8(4), uint64(1)<<63)
	f.Add("share", "of", "é", "\\n", uint8(3), uint8(7), math.Float64bits(0.5))
	e, err := New(Config{Mapper: newMapper(f)})
	if err != nil {
		f.Fatal(err)
	}
	h := e.Handler()
	f.Fuzz(func(t *testing.T, name, help, object, job string, class, datatype uint8, value uint64) {
		v := mpit.Variable{Name: name, Description: help, Class: mpit.Class(class % 10),
			Datatype: mpit.Datatype(datatype % 16), DatatypeBytes: 8, Bind: mpit.BindComm}
		s := &mpit.Sample{
			Variables: &mpit.Variables{ByID: []mpit.Variable{v}},
			Layout: &mpit.Layout{
				Objects: []mpit.Object{{ID: 1, Kind: mpit.BindComm, Name: object, Size: 1, Created: testTime}},
				Handles: []mpit.Handle{{ID: 1, Object: 1, Count: 1, Created: testTime}},
				Values:  1,
			},
			Values: []uint64{value}, Time: testTime, Monotonic: 1,
		}
		hello := mpit.Hello{
			ID: mpit.RankID{1}, Host: object, Executable: name, LibraryVersion: help, AgentVersion: job,
			InitTime:   testTime,
			Attributes: map[string]string{"SLURM_JOB_ID": job, "SLURM_JOB_NAME": help},
		}
		g := e.lock()
		r := g.add(hello, mpit.Peer{}, e.identify(&hello, mpit.Peer{}, "alice"))
		r.gone, r.state = e.now().AddDate(1, 0, 0), stateUp // not lost yet
		g.unlock()
		taken := e.absorbed(r, s)
		defer func() {
			g := e.lock()
			defer g.unlock()
			g.remove(r)
		}()
		if !taken {
			t.Fatal("panic")
		}
		text := get(h, "/metrics").Body.String()
		parser := expfmt.NewTextParser(model.UTF8Validation)
		parsed, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		fromText := map[string]*dto.MetricFamily{}
		for name, f := range parsed {
			fromText[name] = f
		}
		families := 0
		for _, want := range decoded(t, h) {
			if strings.HasPrefix(want.GetName(), "mpit_exporter_") {
				continue // its own: they count these very scrapes
			}
			families++
			got := fromText[want.GetName()]
			if got == nil {
				t.Fatalf("%s is not in the text", want.GetName())
			}
			if got.GetType() != want.GetType() || got.GetHelp() != want.GetHelp() {
				t.Fatalf("%v %q where %v %q was rendered", got.GetType(), got.GetHelp(), want.GetType(),
					want.GetHelp())
			}
			was, is := valuesOf([]*dto.MetricFamily{want}), valuesOf([]*dto.MetricFamily{got})
			if fmt.Sprint(was) != fmt.Sprint(is) {
				t.Fatalf("%v where %v was rendered", is, was)
			}
		}
		if families < 5 {
			t.Fatalf("%d families", families)
		}
		open := get(h, "/metrics", "Accept", acceptOpenMetrics).Body.String()
		if !strings.HasSuffix(open, "\n# EOF\n") || strings.Count(open, "\n# EOF\n") != 1 {
			t.Fatalf("not whole: %q", open)
		}
	})
}
