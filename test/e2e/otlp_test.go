package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// never is an interval that does not come about in a test: whatever is pushed is pushed because it was asked for, or
// has ended.
const never = "--otlp.interval=24h"

// pushOnce runs "mpit-exporter push --once" beside an exporter's socket.
func pushOnce(t *testing.T, socket string, env []string, flags ...string) harness.Result {
	t.Helper()
	return suite.Start(t, append([]string{suite.Binary(), "push", "--once", "--agent.socket=" + socket}, flags...),
		env).Wait(t)
}

// pushNow has an exporter push, which must succeed.
func pushNow(t *testing.T, exporter *harness.Exporter) {
	t.Helper()
	result := pushOnce(t, exporter.Socket, nil)
	require.Zero(t, result.Status, "%+v\n%s", result, exporter.Log())
	require.Regexp(t, `^[1-9][0-9]* points delivered\n$`, result.Stdout)
}

// A program of the fixture that counts what it is told to.
var (
	countedEvents = fixture.Variable{Name: "events", Class: mpit.ClassCounter, Type: fixture.UnsignedLong,
		ProcessWide: true, Initial: []float64{1000}}
	depth   = fixture.Variable{Name: "depth", Class: mpit.ClassLevel, Initial: []float64{3}}
	waiting = fixture.Variable{Name: "waiting", Class: mpit.ClassTimer, Type: fixture.Double,
		ProcessWide: true, Initial: []float64{0}}
)

func countingProgram(t *testing.T, exporter *harness.Exporter) *fixture.Program {
	t.Helper()
	p := fixture.Start(t, fixture.Plain(suite), &fixture.Library{Variables: []fixture.Variable{countedEvents, depth,
		waiting}}, fixture.Options{Socket: exporter.Socket})
	p.Init(t)
	return p
}

// A real job and a counter that is reset, pushed over both protocols: in one run, whatever a
// receiver has added up is what /metrics shows at that moment, before and after a reset, an outage of the receiver
// and the ranks' ends.
func TestOTLPTruth(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{otlptest.GRPC, otlptest.HTTP} {
		t.Run(strings.ReplaceAll(protocol, "/", "-"), func(t *testing.T) {
			t.Parallel()
			otlpTruth(t, protocol)
		})
	}
}

func otlpTruth(t *testing.T, protocol string) {
	receiver := receive(t, otlptest.Options{Protocol: protocol})
	exporter := suite.ExporterIn(t, []string{"OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_TIMEOUT=3000"},
		"--otlp.endpoint="+receiver.URL(), "--otlp.protocol="+protocol, "--otlp.final", never, "--timer-interval=100ms")
	mpi := harness.OpenMPI(t)
	run := suite.Run(t, harness.Job{
		MPI: mpi, Program: "traffic.c", Args: []string{"25", "1000", harness.HoldDir},
		Exec: []string{"--monitoring"}, Socket: exporter.Socket,
	})
	program := countingProgram(t, exporter)
	whose := ofJobs(run.ID, program.ID)
	run.AtHold(t, "ready")
	exporter.Await(t, "the ranks", all(up(run), program.Shows(countedEvents, "-")))

	// standing: the job stands still, so the page before the push is the page after it.
	standing := func(what string, whose func(harness.Series) bool) *harness.Scrape {
		t.Helper()
		pushNow(t, exporter)
		page := exporter.Scrape(t)
		require.NoError(t, sameAsPage(t, receiver, page, whose), what)
		return page
	}
	standing("before the traffic", whose)
	run.Release(t, "ready")
	run.AtHold(t, "half")
	program.Set(t, countedEvents, "-", 5000)
	program.Set(t, waiting, "-", 7)
	program.Set(t, depth, "-", 1)
	exporter.Await(t, "the first half", all(counted(run, oneToAllBytes, "ring", atRoot(25*1000)),
		program.Shows(countedEvents, "-"), program.Shows(depth, "-"),
		func(s *harness.Scrape) error { // seven seconds are an event when the next interval has begun
			series, err := s.One("mpit_waiting_time_seconds", program.Labels())
			if err == nil && series.Metric.GetHistogram().GetSampleCount() != 1 {
				err = fmt.Errorf("no event yet: %v", series.Metric)
			}
			return err
		}))
	standing("the first half", whose)
	first, firstPoints, err := one(t, receiver, "mpit_events_total", program.ID)
	require.NoError(t, err)
	assert.InDelta(t, 5000, first.value, 0)

	// A reset: the total stays, and goes on from what the program's counter has then.
	program.Set(t, countedEvents, "-", 40)
	program.Set(t, depth, "-", 2)
	events := func(n float64) check { return expect("mpit_events_total", program.Labels(), n) }
	exporter.Await(t, "the reset", all(program.Shows(depth, "-"), events(5000)))
	standing("others, beside a reset", ofJobs(run.ID))
	after, points, err := one(t, receiver, "mpit_events_total", program.ID)
	require.NoError(t, err)
	last := points[len(points)-1]
	assert.InDelta(t, 5000, after.value, 0)
	assert.Equal(t, firstPoints[0].start, last.start)

	// An outage: nobody listens, the job goes on, and afterwards nothing is missing.
	receiver.Stop()
	run.Release(t, "half")
	run.AtHold(t, "done")
	program.Set(t, countedEvents, "-", 47)
	exporter.Await(t, "the second half", all(counted(run, oneToAllBytes, "ring", atRoot(50*1000)), events(5007)))
	failed := pushOnce(t, exporter.Socket, nil)
	assert.Equal(t, 1, failed.Status)
	assert.Empty(t, failed.Stdout)
	assert.Regexp(t, `^mpit-exporter: push: the exporter of this node: failed: [^\n]+\n$`, failed.Stderr)
	// Another program's connection may have got its port meanwhile, for a while.
	harness.Await(t, "the receiver's port", func(context.Context) error { return receiver.Restart() })
	standing("what was counted during the outage", ofJobs(run.ID))
	after, _, err = one(t, receiver, "mpit_events_total", program.ID)
	require.NoError(t, err)
	assert.InDelta(t, 5007, after.value, 0)

	// The ends, which nobody asks for.
	program.Set(t, countedEvents, "-", 50)
	run.Finish(t, "done")
	program.Finish(t)
	ends := exporter.Await(t, "the ends", ended(run, "finalize"))
	ctx, cancel := harness.Patient(t)
	defer cancel()
	require.NoError(t, receiver.Await(ctx, func(r *otlptest.Receiver) bool {
		_, _, err := one(t, r, "mpit_rank_end_info", program.ID)
		return err == nil && sameAsPage(t, r, ends, ofJobs(run.ID)) == nil
	}), "the last values")
	after, _, err = one(t, receiver, "mpit_events_total", program.ID)
	require.NoError(t, err)
	assert.InDelta(t, 5010, after.value, 0)
	for _, request := range receiver.Requests() {
		assert.Equal(t, "gzip", request.Encoding)
		assert.LessOrEqual(t, request.Bytes, 4<<20)
	}
	exporter.Await(t, "health", healthy)
}

// What a receiver gets says of which node and program it is.
func TestOTLPNames(t *testing.T) {
	t.Parallel()
	receiver := receive(t, otlptest.Options{Protocol: otlptest.GRPC})
	exporter := suite.ExporterIn(t, []string{"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test"},
		"--otlp.endpoint="+receiver.URL(), "--otlp.protocol=grpc", never)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "unexpected.c", Args: []string{"137", harness.HoldDir},
		Socket: exporter.Socket,
	})
	run.AtHold(t, "queued")
	exporter.Await(t, "the queue", expect(unexpectedQueue, run.Labels(1).With("comm", "backlog"), 137))
	pushNow(t, exporter)
	host, err := os.Hostname()
	require.NoError(t, err)
	found := false
	for _, request := range receiver.Requests() {
		for _, resource := range request.Message.ResourceMetrics {
			about := attributes(resource.Resource.Attributes)
			assert.Equal(t, "mpit-exporter", about["service.name"])
			assert.Equal(t, host, about["host.name"])
			assert.Equal(t, "test", about["deployment.environment.name"])
			assert.Equal(t, host+":"+exporter.Socket, about["service.instance.id"])
			assert.NotEmpty(t, about["service.version"])
			for _, scope := range resource.ScopeMetrics {
				for _, m := range scope.Metrics {
					if m.Name != "mpit.pml_ob1_unexpected_msgq_length" {
						continue
					}
					for _, p := range append(m.GetGauge().GetDataPoints(), m.GetSum().GetDataPoints()...) {
						labels := attributes(p.Attributes)
						if labels["comm"] == "backlog" && labels["rank"] == "1" {
							found = true
							assert.Equal(t, run.ID, labels["jobid"])
							assert.InDelta(t, 137, float64(p.GetAsInt())+p.GetAsDouble(), 0)
						}
					}
				}
			}
		}
	}
	assert.True(t, found, "the queue was not pushed under its name")
	run.Finish(t, "queued", "drained")
}

// A receiver gets, under the names that Prometheus makes of them, exactly the series of /metrics but those of the Go
// runtime, the exporter's own included: so what asks for the ones finds the others.
func TestOTLPLabels(t *testing.T) {
	t.Parallel()
	receiver := receive(t, otlptest.Options{Protocol: otlptest.HTTP})
	exporter := suite.Exporter(t, "--otlp.endpoint="+receiver.URL(), "--cvar.name=btl_base_*", never)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "traffic.c", Args: []string{"25", "1000", harness.HoldDir},
		Exec: []string{"--monitoring", "--calls"}, Socket: exporter.Socket,
	})
	program := countingProgram(t, exporter)
	run.AtHold(t, "ready")
	exporter.Await(t, "the ranks", all(up(run), program.Shows(countedEvents, "-")))
	run.Release(t, "ready")
	run.AtHold(t, "half")
	harness.Await(t, "a push that is the page", func(context.Context) error { // what is asked for later comes by and by
		receiver.Forget()
		pushNow(t, exporter)
		return asOnPage(t, pushes(t, receiver), exporter.Scrape(t))
	})
	program.Finish(t)
	run.Finish(t, "half", "done")
}

// asOnPage compares what was pushed, by seriesKey, with all of a page.
func asOnPage(t *testing.T, pushed map[string][]pushed, page *harness.Scrape) error {
	t.Helper()
	var failed []error
	compared := map[string]int{} // by the first word of their names
	for _, name := range page.Names("") {
		if strings.HasPrefix(name, "go_") {
			continue
		}
		for _, series := range page.Select(name, nil) {
			key := seriesKey(name, series.Labels)
			list := pushed[key]
			delete(pushed, key)
			space, _, _ := strings.Cut(name, "_")
			compared[space]++
			switch {
			case len(list) != 1:
				failed = append(failed, fmt.Errorf("%s was pushed %d times", key, len(list)))
			case space != "process" && !moving(name):
				failed = append(failed, compare(series, list[0]))
			}
		}
	}
	for key := range pushed {
		failed = append(failed, fmt.Errorf("%s was pushed and is not on the page", key))
	}
	for _, name := range []string{"mpit_cvar_ranks", "mpit_pvar_category_info", "mpit_call_bytes_total",
		"mpit_exporter_http_refused_total", "mpit_exporter_otlp_points_total", "process_cpu_seconds_total"} {
		if len(page.Select(name, nil)) == 0 {
			failed = append(failed, fmt.Errorf("%s is not on the page", name))
		}
	}
	t.Logf("series compared: %v", compared)
	return errors.Join(failed...)
}

// A scrape and a push that come together make one round: the rank is asked once, and both get the same, figures that
// move by being read included.
func TestOTLPSharesRounds(t *testing.T) {
	t.Parallel()
	receiver := receive(t, otlptest.Options{Protocol: otlptest.HTTP})
	exporter := suite.Exporter(t, "--otlp.endpoint="+receiver.URL(), never)
	program := countingProgram(t, exporter)
	exporter.Await(t, "the rank", program.Shows(countedEvents, "-"))
	program.Do(t, "slow MPI_T_pvar_read 700 depth") // so that there is time to come together
	ctx, cancel := harness.Patient(t)
	defer cancel()
	for round, same := 0, false; !same; round++ {
		require.NoError(t, ctx.Err(), "no push has come together with a scrape")
		before := exporter.Scrape(t) // which takes as long
		require.NoError(t, expect("mpit_rank_up", program.Labels(), 1)(before))
		program.Set(t, countedEvents, "-", float64(5000+round))
		time.Sleep(300 * time.Millisecond) // the round of before can't be joined any more
		push := suite.Start(t, []string{suite.Binary(), "push", "--once", "--agent.socket=" + exporter.Socket}, nil)
		// It takes its time to start, nobody knows how long.
		time.Sleep(time.Duration(150+100*(round%10)) * time.Millisecond)
		page := exporter.Scrape(t)
		require.Zero(t, push.Wait(t).Status)
		rounds := func(s *harness.Scrape) harness.Series {
			series, err := s.One("mpit_exporter_rounds_total", nil)
			require.NoError(t, err)
			return series
		}
		pushed := pushes(t, receiver)[seriesKey("mpit_exporter_rounds_total", rounds(page).Labels)]
		require.NotEmpty(t, pushed)
		if rounds(page).Value != rounds(before).Value+1 || compare(rounds(page), pushed[len(pushed)-1]) != nil {
			continue // one came too late for the other's
		}
		same = true
		for _, name := range []string{"mpit_events_total", "mpit_rank_agent_cpu_seconds_total"} {
			for _, series := range page.Select(name, nil) {
				list := pushes(t, receiver)[seriesKey(name, series.Labels)]
				require.NotEmpty(t, list, name)
				require.NoError(t, compare(series, list[len(list)-1]))
			}
		}
	}
	program.Do(t, "heal MPI_T_pvar_read")
	program.Finish(t)
}

// A receiver that does not answer holds up no scrape, and scrapers that do not read hold up no push.
func TestOTLPAndScrapesDisturbNobody(t *testing.T) {
	t.Parallel()
	receiver := receive(t, otlptest.Options{Protocol: otlptest.GRPC})
	exporter := suite.Exporter(t, "--otlp.endpoint="+receiver.URL(), "--otlp.protocol=grpc", never)
	program := countingProgram(t, exporter)
	exporter.Await(t, "the rank", program.Shows(countedEvents, "-"))

	answer := make(chan struct{})
	receiver.Answer(func(*otlptest.Request) otlptest.Answer { return otlptest.Accept().When(answer) })
	push := suite.Start(t, []string{suite.Binary(), "push", "--once", "--agent.socket=" + exporter.Socket}, nil)
	ctx, cancel := harness.Patient(t)
	defer cancel()
	arrived := func() bool { return len(receiver.All()) > 0 }
	harness.Await(t, "the push", func(context.Context) error {
		if !arrived() {
			return errors.New("nothing has arrived")
		}
		return nil
	})
	for i := range 20 {
		program.Set(t, countedEvents, "-", float64(6000+i))
		exporter.Await(t, "a page", program.Shows(countedEvents, "-"))
	}
	require.False(t, push.Ended(), "the receiver has not answered")
	require.Empty(t, receiver.Requests())
	close(answer)
	require.Zero(t, push.Wait(t).Status)
	require.NoError(t, receiver.AwaitRequests(ctx, 1))

	for range 10 {
		conn, err := net.Dial("tcp", exporter.Address)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
		require.NoError(t, err)
	}
	pushNow(t, exporter)
	assert.NoError(t, sameAsPage(t, receiver, exporter.Scrape(t), ofJobs(program.ID)))
	program.Finish(t)
}

// The receiver is killed and comes back time after time while many ranks count: when all is over, what has arrived
// adds up to what they counted.
func TestOTLPReceiverKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const ranks = 64
	receiver := receive(t, otlptest.Options{Protocol: otlptest.GRPC})
	exporter := suite.ExporterIn(t, []string{"OTEL_EXPORTER_OTLP_TIMEOUT=1000"}, "--otlp.endpoint="+receiver.URL(),
		"--otlp.protocol=grpc", "--otlp.interval=100ms", "--otlp.final", "--retention=10m")
	job := mpittest.NewJob(ranks)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ran := make(chan error, 1)
	go func() { ran <- job.Run(ctx, exporter.Socket) }()
	exporter.Await(t, "the ranks", func(s *harness.Scrape) error {
		if n := len(s.Select("mpit_rank_up", nil)); n != ranks {
			return fmt.Errorf("%d ranks", n)
		}
		return nil
	})
	waitFor := func(n int) {
		t.Helper()
		ctx, cancel := harness.Patient(t)
		defer cancel()
		require.NoError(t, receiver.AwaitRequests(ctx, len(receiver.Requests())+n))
	}
	for range 5 {
		waitFor(2)
		receiver.Kill()
		time.Sleep(300 * time.Millisecond) // the job goes on
		require.NoError(t, receiver.Restart())
	}
	waitFor(2)
	end()
	require.NoError(t, <-ran)
	page := exporter.Await(t, "the ends", func(s *harness.Scrape) error {
		if n := len(s.Select("mpit_rank_end_info", nil)); n != ranks {
			return fmt.Errorf("%d ranks have ended", n)
		}
		return nil
	})
	harness.Await(t, "the last values", func(context.Context) error {
		return sameAsPage(t, receiver, page, func(s harness.Series) bool { return s.Labels["jobid"] != "" })
	})
	t.Logf("%d messages accepted, %d in all", len(receiver.Requests()), len(receiver.All()))
	refused, err := exporter.Scrape(t).One("mpit_exporter_rounds_total", nil)
	require.NoError(t, err)
	t.Logf("rounds: %v", refused.Value)
}

// An exporter that only pushes has no port. When it is told to end it pushes once more, while the ranks are there.
func TestPushWithoutHTTP(t *testing.T) {
	t.Parallel()
	receiver := receive(t, otlptest.Options{Protocol: otlptest.GRPC})
	socket := filepath.Join(suite.Dir(t), "agent.sock")
	exporter := suite.Start(t, []string{suite.Binary(), "push", "--agent.socket=" + socket,
		"--otlp.endpoint=" + receiver.URL(), "--otlp.protocol=grpc", never}, nil)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "unexpected.c", Args: []string{"7", harness.HoldDir}, Socket: socket,
	})
	run.AtHold(t, "queued")
	harness.Await(t, "a push with the ranks in it", func(context.Context) error {
		if result := pushOnce(t, socket, nil); result.Status != 0 {
			return fmt.Errorf("%+v", result)
		}
		_, _, err := one(t, receiver, unexpectedQueue, run.ID, "backlog", "1")
		return err
	})
	receiver.Forget()
	assert.Empty(t, ports(t, exporter.PID()))

	exporter.Signal(t, syscall.SIGTERM)
	result := exporter.Wait(t)
	assert.Zero(t, result.Status, result.Stderr)
	rank, _, err := one(t, receiver, "mpit_rank_up", run.ID, "1")
	require.NoError(t, err, "the last push")
	assert.InDelta(t, 1, rank.value, 0, "the ranks were there")
	assert.NoFileExists(t, socket)
	run.Finish(t, "queued", "drained")
}

// ports are the sockets at which a process listens over TCP.
func ports(t *testing.T, pid int) []string {
	t.Helper()
	own := map[string]bool{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		target, _ := os.Readlink(file) // closed meanwhile
		own[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
	}
	var listening []string
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			const listen, state, inode = "0A", 3, 9
			if words := strings.Fields(line); len(words) > inode && words[state] == listen && own[words[inode]] {
				listening = append(listening, words[1])
			}
		}
	}
	return listening
}

// With TLS on both sides and a secret header, over gRPC and over HTTP; behind Landlock. The secret is on no command
// line.
func TestOTLPSecrets(t *testing.T) {
	t.Parallel()
	authority, err := otlptest.NewAuthority()
	require.NoError(t, err)
	ca, cert, key, err := authority.WriteFiles(suite.Dir(t), "node1")
	require.NoError(t, err)
	env := []string{"OTEL_EXPORTER_OTLP_CERTIFICATE=" + ca, "OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE=" + cert,
		"OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY=" + key,
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20s3cret%3D"}
	for _, protocol := range []string{otlptest.GRPC, otlptest.HTTP} {
		t.Run(strings.ReplaceAll(protocol, "/", "-"), func(t *testing.T) {
			tls, err := authority.ServerTLS(true)
			require.NoError(t, err)
			receiver := receive(t, otlptest.Options{Protocol: protocol, TLS: tls,
				Headers: map[string]string{"authorization": "Bearer s3cret="}})
			exporter := suite.ExporterIn(t, env, "--otlp.protocol="+protocol, "--otlp.endpoint="+receiver.URL(), never)
			program := countingProgram(t, exporter)
			exporter.Await(t, "the rank", program.Shows(countedEvents, "-"))
			pushNow(t, exporter)
			require.NotEmpty(t, receiver.Requests())
			assert.Equal(t, "node1", receiver.Requests()[0].Client)
			assert.NoError(t, sameAsPage(t, receiver, exporter.Scrape(t), ofJobs(program.ID)))

			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", exporter.PID()))
			require.NoError(t, err)
			assert.NotContains(t, string(line), "s3cret")
			assert.NotContains(t, exporter.Log(), "s3cret")
			page, _ := exporter.Get(t, "/metrics", "")
			assert.False(t, bytes.Contains(page, []byte("s3cret")))
			program.Finish(t)
		})
	}
}
