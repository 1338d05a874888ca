package otlp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
)

// What is pushed arrives as it was read, over both protocols, whatever the process' own environment says.
func TestPush(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://elsewhere:1/nowhere")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "from=environment")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "gzip")
	authority, err := otlptest.NewAuthority()
	require.NoError(t, err)
	ca, _, _, err := authority.WriteFiles(t.TempDir(), "node1")
	require.NoError(t, err)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", ca)
	for _, protocol := range protocols {
		for _, compression := range []string{"none", "gzip"} {
			t.Run(protocol+" "+compression, func(t *testing.T) {
				r := receiver(t, otlptest.Options{Protocol: protocol})
				s := newSource(func() []metricdata.ScopeMetrics {
					return inScope(counter("mpit.calls", point(0, 0, 1, 7), point(1, 0, 1, 8)),
						histogramOf("mpit.time", 0, 0, 1, 3, 4))
				})
				cfg := Config{Protocol: protocol, Endpoint: r.URL(), Version: "1.2.3",
					Environ: env("OTEL_RESOURCE_ATTRIBUTES", "cluster=x", "OTEL_EXPORTER_OTLP_COMPRESSION", compression)}
				if protocol == ProtocolHTTP {
					cfg.Endpoint += "/v1/metrics?key=1"
				}
				p := pusher(t, cfg, s)
				n, err := p.Push(patient(t))
				require.NoError(t, err)
				assert.Equal(t, 3, n)
				require.Len(t, r.Requests(), 1)
				request := r.Requests()[0]
				assert.Equal(t, compression == "gzip", request.Encoding == "gzip")
				assert.Empty(t, request.Header["from"])
				assert.Equal(t, protocol == ProtocolHTTP, request.Query == "key=1")
				require.Len(t, request.Header["user-agent"], 1)
				assert.Contains(t, request.Header["user-agent"][0], "mpit-exporter/1.2.3")
				assert.Equal(t, 1, s.counted(&s.delivered))

				var attrs []string
				for _, kv := range request.Message.ResourceMetrics[0].Resource.Attributes {
					attrs = append(attrs, kv.Key)
				}
				assert.Equal(t, []string{"cluster", "host.name", "process.executable.name", "service.instance.id",
					"service.name", "service.version"}, attrs)
				assert.Equal(t, "mpit-exporter", request.Message.ResourceMetrics[0].ScopeMetrics[0].Scope.Name)
				totals := r.Totals()
				assert.InDelta(t, 8, totals["mpit.calls{jobid=4711,rank=1}"].Float, 0)
				assert.Equal(t, map[int]uint64{0: 3, 1: 4}, totals["mpit.time{jobid=4711,rank=0}"].Buckets)
				assert.InDelta(t, 3, figure(t, p, "mpit_exporter_otlp_points_total", pointsSent), 0)
				assert.InDelta(t, 1, figure(t, p, "mpit_exporter_otlp_pushes_total", pushSuccess), 0)
				assert.Positive(t, figure(t, p, "mpit_exporter_otlp_last_success_timestamp_seconds", ""))
			})
		}
	}
}

// The receiver has an authority's certificate and wants one of ours.
func TestTLS(t *testing.T) {
	authority, err := otlptest.NewAuthority()
	require.NoError(t, err)
	serverTLS, err := authority.ServerTLS(true)
	require.NoError(t, err)
	ca, cert, key, err := authority.WriteFiles(t.TempDir(), "node1")
	require.NoError(t, err)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol, TLS: serverTLS,
				Headers: map[string]string{"Authorization": "Basic bWU6c0BjcmV0", "tenant": "a b"}})
			endpoint := strings.Replace(r.URL(), "https://", "https://me:s%40cret@", 1)
			p := pusher(t, Config{Protocol: protocol, Endpoint: endpoint, Environ: env(
				"OTEL_EXPORTER_OTLP_CERTIFICATE", ca, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", cert,
				"OTEL_EXPORTER_OTLP_CLIENT_KEY", key, "OTEL_EXPORTER_OTLP_HEADERS", "tenant=a%20b")}, one())
			_, err := p.Push(patient(t))
			require.NoError(t, err)
			assert.Equal(t, "node1", r.Requests()[0].Client)
		})
	}
}

// What the receiver refuses for a moment is sent again within the timeout, after as long as it says.
func TestRepetitions(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol})
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Environ: patiently}, one())
			r.Answer(func(request *otlptest.Request) otlptest.Answer {
				switch request.Number {
				case 1:
					return otlptest.Busy(0)
				case 2:
					return otlptest.Unavailable(0)
				}
				return otlptest.Accept()
			})
			_, err := p.Push(patient(t))
			require.NoError(t, err)
			assert.Len(t, r.All(), 3)
			assert.Len(t, r.Requests(), 1)

			r.Answer(func(*otlptest.Request) otlptest.Answer { return otlptest.Busy(time.Hour) })
			_, err = p.Push(patient(t))
			require.Error(t, err)
			assert.Len(t, r.All(), 4, "an hour is longer than the timeout")
			assert.InDelta(t, 1, figure(t, p, "mpit_exporter_otlp_points_total", pointsFailed), 0)
		})
	}
}

// A push that begins while nobody listens succeeds if somebody does before its timeout.
func TestReceiverComesWithinThePush(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol})
			r.Stop()
			s := one()
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Environ: patiently}, s)
			done := make(chan error, 1)
			go func() {
				_, err := p.Push(patient(t))
				done <- err
			}()
			for s.counted(&s.reads) == 0 {
				time.Sleep(time.Millisecond)
			}
			require.NoError(t, r.Restart())
			require.NoError(t, <-done)
		})
	}
}

// An outage, in which a counter grows, another begins anew and a third ends: afterwards, what the receiver knows is
// whole.
func TestOutage(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol})
			read := inScope()
			s := newSource(func() []metricdata.ScopeMetrics { return read })
			log := &logged{}
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Environ: patiently, Logger: log.logger()}, s)
			push := func(now int, first, second int64, counts ...uint64) error {
				read = inScope(counter("calls", point(0, 0, now, first), point(1, 0, now, second)),
					histogramOf("time", 0, 0, now, counts...))
				if now > 30 { // begun anew
					read = inScope(counter("calls", point(0, 0, now, first), point(1, 25, now, second)),
						histogramOf("time", 0, 0, now, counts...))
				}
				_, err := p.Push(patient(t))
				return err
			}
			require.NoError(t, push(10, 5, 100, 1, 2))
			require.NoError(t, push(20, 6, 110, 1, 3))
			r.Stop()
			p.set.timeout = 50 * time.Millisecond
			require.Error(t, push(31, 7, 1, 2, 3))
			require.Error(t, push(40, 8, 2, 2, 4))
			p.set.timeout = time.Minute
			require.NoError(t, r.Restart())
			require.NoError(t, push(50, 9, 3, 2, 5))
			totals := r.Totals()
			assert.InDelta(t, 9, totals["calls{jobid=4711,rank=0}"].IncreaseFloat, 0)
			assert.InDelta(t, 113, totals["calls{jobid=4711,rank=1}"].IncreaseFloat, 0)
			h := totals["time{jobid=4711,rank=0}"]
			assert.Equal(t, uint64(7), h.IncreaseCount)
			assert.InDelta(t, 5, h.IncreaseFloat, 0)
			assert.Equal(t, 3, s.counted(&s.delivered))
			assert.Equal(t, 1, strings.Count(log.String(), "can't push"), "once for an outage")
			assert.Equal(t, 1, strings.Count(log.String(), "pushing works again"))
		})
	}
}

// Points that the receiver rejects are counted, are no error, and are not sent again.
func TestPartialSuccess(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			var global []error
			otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { global = append(global, err) }))
			r := receiver(t, otlptest.Options{Protocol: protocol})
			r.Answer(func(*otlptest.Request) otlptest.Answer { return otlptest.Partial(1, "out of order") })
			log := &logged{}
			s := newSource(func() []metricdata.ScopeMetrics {
				return inScope(counter("calls", point(0, 0, 1, 1), point(1, 0, 1, 2)))
			})
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Logger: log.logger()}, s)
			for range 2 {
				n, err := p.Push(patient(t))
				require.NoError(t, err)
				assert.Equal(t, 1, n)
			}
			assert.Equal(t, 2, s.counted(&s.delivered))
			assert.InDelta(t, 2, figure(t, p, "mpit_exporter_otlp_points_total", pointsRejected), 0)
			assert.InDelta(t, 2, figure(t, p, "mpit_exporter_otlp_points_total", pointsSent), 0)
			assert.Equal(t, 1, strings.Count(log.String(), "has not taken all points"))
			assert.Contains(t, log.String(), "out of order")
			assert.Empty(t, global, "nothing for the whole process' handler")
		})
	}
}

// A message that the receiver does not like does not keep the others from going; the next push has its points, too.
func TestRefusedMessage(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol})
			now := 0
			s := newSource(func() []metricdata.ScopeMetrics {
				now++
				return inScope(counter("calls", point(0, 0, now, 1), point(1, 0, now, 2), point(2, 0, now, 4)))
			})
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL()}, s)
			p.limit = onePoint(p, s.read())
			r.Answer(func(request *otlptest.Request) otlptest.Answer {
				if request.Number == 2 {
					return otlptest.Refuse("I don't like this one")
				}
				return otlptest.Accept()
			})
			n, err := p.Push(patient(t))
			require.ErrorContains(t, err, "I don't like this one")
			assert.Equal(t, 2, n)
			assert.Len(t, r.All(), 3)
			assert.Zero(t, s.counted(&s.delivered))
			assert.InDelta(t, 1, figure(t, p, "mpit_exporter_otlp_points_total", pointsFailed), 0)

			n, err = p.Push(patient(t))
			require.NoError(t, err)
			assert.Equal(t, 3, n)
			totals := r.Totals()
			assert.InDelta(t, 1, totals["calls{jobid=4711,rank=0}"].IncreaseFloat, 0)
			assert.InDelta(t, 2, totals["calls{jobid=4711,rank=1}"].IncreaseFloat, 0)
			assert.InDelta(t, 4, totals["calls{jobid=4711,rank=2}"].IncreaseFloat, 0)
			assert.Equal(t, 1, s.counted(&s.delivered))
		})
	}
}

// Whatever a receiver has to say, an error and the log have a bounded part of it.
func TestTalkativeReceiver(t *testing.T) {
	for _, protocol := range protocols {
		for name, answer := range map[string]otlptest.Answer{
			"refuses":      otlptest.Refuse(strings.Repeat("no, ", 64<<10)),
			"takes a part": otlptest.Partial(1, strings.Repeat("some, ", 64<<10)),
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				r := receiver(t, otlptest.Options{Protocol: protocol,
					Answer: func(*otlptest.Request) otlptest.Answer { return answer }})
				var log logged
				p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Logger: log.logger()}, one())
				_, err := p.Push(patient(t))
				if err != nil {
					assert.Less(t, len(err.Error()), 3<<10)
				}
				assert.NotEmpty(t, log.String())
				assert.Less(t, len(log.String()), 4<<10)
			})
		}
	}
}

// Status 200 is no success if no receiver of OTLP has said it; one that says nothing besides has.
func TestAnswerOfAnotherProgram(t *testing.T) {
	partly, err := proto.Marshal(&collector.ExportMetricsServiceResponse{
		PartialSuccess: &collector.ExportMetricsPartialSuccess{RejectedDataPoints: 1}})
	require.NoError(t, err)
	const protobuf, jsonType = "application/x-protobuf", "application/json; charset=utf-8"
	for _, test := range []struct {
		name, kind, body string
		endless          bool
		accepted         int
		want             string
	}{
		{name: "nothing", accepted: 1},
		{name: "nothing, of a type", kind: "text/plain", accepted: 1},
		{name: "all taken", kind: jsonType, body: "{}", accepted: 1},
		{name: "all taken, and more", kind: jsonType, body: `{"new":1}`, accepted: 1},
		{name: "none taken", kind: jsonType, body: `{"partialSuccess":{"rejectedDataPoints":"1"}}`},
		{name: "none taken", kind: protobuf, body: string(partly)},
		{name: "a page", kind: "text/html", body: "<html>Log in", want: `of type "text/html"`},
		{name: "no type", kind: "-", body: "ok", want: `of type "-"`},
		{name: "no protobuf", kind: protobuf, body: "\xff\xff\xff", want: "it can't be read"},
		{name: "no JSON", kind: jsonType, body: "<html>", want: "it can't be read"},
		{name: "without end", kind: protobuf, body: strings.Repeat("\x00", 64<<10), endless: true,
			want: "it can't be read"},
		{name: "without end", kind: "text/html", body: strings.Repeat(" ", 64<<10), endless: true,
			want: `of type "text/html"`},
	} {
		t.Run(test.name+" "+test.kind, func(t *testing.T) {
			var asked, sent atomic.Int64
			r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				asked.Add(1)
				w.Header().Set("Content-Type", test.kind)
				for err := error(nil); err == nil && sent.Load() < 64<<20; {
					var n int
					n, err = io.WriteString(w, test.body)
					if sent.Add(int64(n)); !test.endless {
						break
					}
				}
			}))
			defer r.Close()
			p := pusher(t, Config{Protocol: ProtocolHTTP, Endpoint: r.URL, Environ: patiently},
				one())
			n, err := p.Push(patient(t))
			assert.Equal(t, test.accepted, n)
			assert.EqualValues(t, 1, asked.Load(), "it is not asked again")
			if test.want == "" {
				assert.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
			assert.Less(t, sent.Load(), int64(32<<20))
			assert.InDelta(t, 1, figure(t, p, "mpit_exporter_otlp_pushes_total", pushFailure), 0)
			assert.InDelta(t, 1, figure(t, p, "mpit_exporter_otlp_points_total", pointsFailed), 0)
		})
	}
}

func FuzzResponse(f *testing.F) {
	f.Add("application/json", []byte(`{"partialSuccess":{"rejectedDataPoints":"1"}}`))
	f.Add("application/x-protobuf", []byte("\x0a\x02\x08\x01"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		said, err := parse(kind, body)
		if (said == nil) == (err == nil) {
			t.Errorf("%v, %v", said, err)
		}
	})
}

// A receiver that doesn't answer is not asked for each message.
func TestAwayIsNotAskedForEach(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			never := make(chan struct{})
			r := receiver(t, otlptest.Options{Protocol: protocol,
				Answer: func(*otlptest.Request) otlptest.Answer { return otlptest.Accept().When(never) }})
			s := newSource(func() []metricdata.ScopeMetrics {
				return inScope(counter("calls", point(0, 0, 1, 1), point(1, 0, 1, 2), point(2, 0, 1, 4)))
			})
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL()}, s)
			p.limit = onePoint(p, s.read())
			p.set.timeout = 200 * time.Millisecond
			_, err := p.Push(patient(t))
			require.Error(t, err)
			assert.LessOrEqual(t, len(r.All()), 1)
			assert.InDelta(t, 3, figure(t, p, "mpit_exporter_otlp_points_total", pointsFailed), 0)
			assert.InDelta(t, 1, figure(t, p, "mpit_exporter_otlp_pushes_total", pushFailure), 0)
		})
	}
}

// A receiver that does not answer costs its timeout, and the next push has all.
func TestSlowReceiver(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol})
			never := make(chan struct{})
			r.Answer(func(*otlptest.Request) otlptest.Answer { return otlptest.Accept().When(never) })
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Environ: patiently}, one())
			p.set.timeout = 50 * time.Millisecond
			_, err := p.Push(patient(t))
			require.Error(t, err)
			r.Answer(nil)
			p.set.timeout = time.Minute
			_, err = p.Push(patient(t))
			require.NoError(t, err)
		})
	}
}

// The source is read by one push at a time, and a push that can't wait for its turn says so.
func TestPushesTakeTurns(t *testing.T) {
	r := receiver(t, otlptest.Options{})
	ready := make(chan struct{})
	r.Answer(func(*otlptest.Request) otlptest.Answer { return otlptest.Accept().When(ready) })
	s := one()
	p := pusher(t, Config{Protocol: ProtocolGRPC, Endpoint: r.URL(), Environ: patiently},
		s)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			_, err := p.Push(patient(t))
			assert.NoError(t, err)
		})
	}
	require.NoError(t, r.Await(patient(t), func(r *otlptest.Receiver) bool { return len(r.All()) == 1 }))
	hurry, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := p.Push(hurry)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, 1, s.counted(&s.reads))
	close(ready)
	all.Wait()
	assert.Len(t, r.Requests(), 3)
}

func TestSourceFails(t *testing.T) {
	log := &logged{}
	s := one()
	s.err = errors.New("no ranks today")
	p := pusher(t, Config{Logger: log.logger()}, s)
	_, err := p.Push(patient(t))
	require.ErrorContains(t, err, "reading the ranks: no ranks today")
	assert.Contains(t, log.String(), "no ranks today")
	assert.InDelta(t, 1, figure(t, p, "mpit_exporter_otlp_pushes_total", pushFailure), 0)
	require.NoError(t, p.Close())
	require.NoError(t, p.Close(), "twice")
	_, err = p.Push(patient(t))
	require.ErrorContains(t, err, "closed")
}

// Whatever keeps a push from arriving is said once, without the endpoint's password.
func TestWhatPushesFailWith(t *testing.T) {
	authority, err := otlptest.NewAuthority()
	require.NoError(t, err)
	serverTLS, err := authority.ServerTLS(false)
	require.NoError(t, err)
	clients, err := authority.ServerTLS(true)
	require.NoError(t, err)
	ca, _, _, err := authority.WriteFiles(t.TempDir(), "node1")
	require.NoError(t, err)
	closed := receiver(t, otlptest.Options{})
	closed.Stop()
	overGRPC, overHTTP := receiver(t, otlptest.Options{}), receiver(t, otlptest.Options{Protocol: ProtocolHTTP})
	tlsGRPC, tlsHTTP := receiver(t, otlptest.Options{TLS: serverTLS}),
		receiver(t, otlptest.Options{Protocol: ProtocolHTTP, TLS: serverTLS})
	strictGRPC := receiver(t, otlptest.Options{TLS: clients})
	strictHTTP := receiver(t, otlptest.Options{Protocol: ProtocolHTTP, TLS: clients})
	for _, tt := range []struct {
		name, protocol, to, ca string
	}{
		{"nobody listens", ProtocolGRPC, "http://" + closed.Addr(), ""},
		{"nobody listens", ProtocolHTTP, "http://" + closed.Addr(), ""},
		{"the port of HTTP", ProtocolGRPC, overHTTP.URL(), ""},
		{"the port of gRPC", ProtocolHTTP, overGRPC.URL(), ""},
		{"no TLS there", ProtocolGRPC, "https://" + overGRPC.Addr(), ""},
		{"no TLS there", ProtocolHTTP, "https://" + overHTTP.Addr(), ""},
		{"TLS there", ProtocolGRPC, "http://" + tlsGRPC.Addr(), ""},
		{"TLS there", ProtocolHTTP, "http://" + tlsHTTP.Addr(), ""},
		{"its own authority", ProtocolGRPC, tlsGRPC.URL(), ""},
		{"its own authority", ProtocolHTTP, tlsHTTP.URL(), ""},
		{"wants a certificate", ProtocolGRPC, strictGRPC.URL(), ca},
		{"wants a certificate", ProtocolHTTP, strictHTTP.URL(), ca},
		{"another path", ProtocolHTTP, overHTTP.URL() + "/v2", ""},
	} {
		t.Run(tt.name+" "+tt.protocol, func(t *testing.T) {
			t.Parallel()
			log := &logged{}
			p := pusher(t, Config{Protocol: tt.protocol, Endpoint: strings.Replace(tt.to, "://", "://me:secret@", 1),
				Logger: log.logger(), Environ: env("OTEL_EXPORTER_OTLP_TIMEOUT", "100",
					"OTEL_EXPORTER_OTLP_CERTIFICATE", tt.ca)}, one())
			for range 2 {
				_, err := p.Push(patient(t))
				require.Error(t, err)
				assert.NotContains(t, err.Error(), "secret")
			}
			assert.Equal(t, 1, strings.Count(log.String(), "\n"))
			assert.NotContains(t, log.String(), "secret")
		})
	}
}

// Names and texts of the pusher's own figures are as Prometheus wants them.
func TestFigures(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	newMetrics(registry)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// onePoint is the limit for messages of one point each.
func onePoint(p *Pusher, read []metricdata.ScopeMetrics) int {
	for limit := 1; ; limit++ {
		if _, tooLarge := pack(p.set.resource, read, limit); tooLarge == 0 {
			return limit
		}
	}
}

// one is a source of one point.
func one() *fakeSource {
	return newSource(func() []metricdata.ScopeMetrics { return inScope(counter("calls", point(0, 0, 1, 1))) })
}
