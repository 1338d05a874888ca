package httpserver

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// docs/metrics.md has the reasons of mpit_exporter_http_refused_total.
func TestReasonsAreDocumented(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newRefusals())
	families, err := registry.Gather()
	require.NoError(t, err)
	var reasons []string
	for _, m := range families[0].Metric {
		reasons = append(reasons, m.Label[0].GetValue())
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "metrics.md"))
	require.NoError(t, err)
	want := "by `reason`: `" + strings.Join(reasons, "`, `") + "`)"
	assert.True(t, strings.Contains(strings.Join(strings.Fields(string(text)), " "), want), "it doesn't say: %s", want)
}

// counted64 is the value of a counter.
func counted64(c prometheus.Metric) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		panic(err) // it has no labels that could be wrong
	}
	return m.GetCounter().GetValue()
}

// loopback are the addresses of a machine that has no other ones.
func loopback() addresses {
	return func() ([]net.Addr, error) { return nil, nil }
}

// A machine's users have all of its addresses: they count as one.
func TestAddress(t *testing.T) {
	asked := 0
	from := remembered(func() (own []net.Addr, err error) {
		asked++
		for _, text := range []string{"127.0.0.1/8", "198.51.100.1/24", "2001:db8:9::1/64", "fe80::9/64"} {
			ip, network, err := net.ParseCIDR(text)
			require.NoError(t, err)
			own = append(own, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		return own, nil
	})
	for remote, want := range map[string]string{
		"192.0.2.7:1234":            "192.0.2.7",
		"[::ffff:192.0.2.7]:1":      "192.0.2.7",
		"[::1]:1":                   thisHost,
		"127.0.0.1:1":               thisHost,
		"127.255.1.2:1":             thisHost,
		"[::ffff:127.0.0.2]:1":      thisHost,
		"198.51.100.1:1":            thisHost,
		"[::ffff:198.51.100.1]:1":   thisHost,
		"198.51.100.2:1":            "198.51.100.2",
		"[2001:db8:9::1]:1":         thisHost,
		"[2001:db8:9::2]:1":         "2001:db8:9::/64",
		"[fe80::9%eth1]:1":          thisHost,
		"[2001:db8:1:2:3:4:5:6]:1":  "2001:db8:1:2::/64",
		"[2001:db8:1:2:ff::1]:9999": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":          "fe80::/64",
		"[::1%x]:1":                 thisHost,
		"host(2):5":                 "host(2):5",
		"":                          "",
	} {
		assert.Equal(t, want, from.of(remote), remote)
	}
	assert.Equal(t, 1, asked, "not for each connection")
}

// fakeConn is a connection from somewhere.
type fakeConn struct {
	net.Conn
	from string
}

func (c *fakeConn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: c.from} }

// Whatever connections do, there are never more than may be, none with a request is closed for another one's sake,
// and one address leaves half to the others.
func TestConnectionsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		refused := newRefusals()
		c := newConnections(limit, loopback(), refused)
		open, closed := []*fakeConn{}, 0
		busy := map[net.Conn]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				each := map[string]int{}
				for _, conn := range open {
					each[conn.from]++
					require.LessOrEqual(t, each[conn.from], half(limit))
				}
				require.LessOrEqual(t, len(open), limit)
				require.Len(t, c.all, len(open))
				unused := 0
				for _, conn := range c.all {
					if conn.unused > 0 {
						unused++
					}
				}
				require.Equal(t, len(open)-len(busy), unused)
				require.Equal(t, closed, int(counted64(refused.WithLabelValues(refusedConnections))+
					counted64(refused.WithLabelValues(refusedAddressConnections))))
			},
			"connect": func(t *rapid.T) {
				conn := &fakeConn{from: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "from")}
				open = append(open, conn)
				over := c.note(conn, http.StateNew)
				if over == nil {
					return
				}
				require.False(t, busy[over], "a request was cut off")
				closed++
				for i := range open {
					if net.Conn(open[i]) == over {
						open = append(open[:i:i], open[i+1:]...)
						break
					}
				}
				require.Nil(t, c.note(over, http.StateClosed), "net/http notices later")
			},
			"request, idle or end": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("no connection")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				state := rapid.SampledFrom([]http.ConnState{http.StateActive, http.StateIdle, http.StateClosed,
					http.StateHijacked}).Draw(t, "state")
				require.Nil(t, c.note(open[i], state))
				switch state {
				case http.StateActive:
					if rapid.Bool().Draw(t, "whole") { // its header
						c.request(open[i])
						busy[open[i]] = true
					}
					return
				case http.StateIdle:
					delete(busy, open[i])
				default:
					delete(busy, open[i])
					open = append(open[:i:i], open[i+1:]...)
				}
			},
		})
	})
}

// The one that goes is the one that has been without a request for longest.
func TestOldestUnusedConnectionGoes(t *testing.T) {
	c := newConnections(3, loopback(), newRefusals())
	conns := map[string]*fakeConn{}
	for _, name := range []string{"first", "second", "third", "fourth"} {
		conns[name] = &fakeConn{from: name}
	}
	for _, name := range []string{"first", "second", "third"} {
		require.Nil(t, c.note(conns[name], http.StateNew))
	}
	c.note(conns["first"], http.StateActive)
	c.request(conns["first"])
	c.note(conns["first"], http.StateIdle)
	assert.Equal(t, conns["second"], c.note(conns["fourth"], http.StateNew))
}

// FuzzAddress: who connects is named, whatever his address looks like.
func FuzzAddress(f *testing.F) {
	for _, remote := range []string{"192.0.2.7:1", "[2001:db8::1]:1", "[::1%x]:1", "host(2):5", ""} {
		f.Add(remote)
	}
	f.Fuzz(func(t *testing.T, remote string) {
		if got := loopback().of(remote); got != remote && strings.ContainsAny(got, "[]") {
			t.Errorf("%q is of %q", remote, got)
		}
	})
}
