package page

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// chooseInterval chooses how often the exporter is asked.
func (u *tab) chooseInterval(seconds string) {
	u.t.Helper()
	u.script(fmt.Sprintf(`(() => {
		const list = document.getElementById("interval");
		list.value = %q;
		list.dispatchEvent(new Event("change"));
	})()`, seconds))
}

// simulated starts an exporter and a simulated rank.
func simulated(t *testing.T, flags ...string) *harness.Exporter {
	t.Helper()
	server := suite.Exporter(t, flags...)
	r := mpittest.New(mpittest.Everything())
	require.NoError(t, r.Connect(t.Context(), server.Socket))
	t.Cleanup(r.Kill)
	return server
}

// A page that nobody sees, or that is paused, asks for nothing; it goes on where it was. Another page is the clock.
func TestPageRests(t *testing.T) {
	t.Parallel()
	server := simulated(t)
	b := startBrowser(t)
	u, clock := b.open(t, server.URL("/")), b.open(t, server.URL("/"))
	for _, tab := range []*tab{u, clock} {
		tab.await(`document.querySelectorAll("#values data.value").length > 0`)
		tab.chooseInterval("1")
	}
	rests := func(t *testing.T, stop, goOn string) {
		u.script(stop)
		tick(t, clock, 1) // what was under way has come
		before := u.asked("/api/")
		tick(t, clock, 2)
		assert.Equal(t, before, u.asked("/api/"), "it asks though it rests")
		u.script(goOn)
		tick(t, u, 1)
	}
	// A tab without a window is always seen; the page only knows what the document says of it.
	const seen = `(() => {
		Object.defineProperty(document, "hidden", {value: %v, configurable: true});
		document.dispatchEvent(new Event("visibilitychange"));
	})()`
	u.part("hidden", func(t *testing.T) { rests(t, fmt.Sprintf(seen, true), fmt.Sprintf(seen, false)) })
	u.part("paused", func(t *testing.T) {
		const click = `document.getElementById("pause").click()`
		rests(t, click, click)
	})
	assert.Zero(t, u.asked("metrics"))
	assert.Equal(t, 1, u.asked("/api/v1/catalogue"), "which costs a rank something: once")
}

// tick waits until a page has asked so many times more.
func tick(t *testing.T, u *tab, times int) {
	t.Helper()
	from := u.asked("/api/v1/report")
	u.until(t, func() bool { return u.asked("/api/v1/report") >= from+times })
}

// The exporter may go and come back: the page says so, keeps what it has, and goes on by itself.
func TestExporterGoesAndComes(t *testing.T) {
	t.Parallel()
	server := simulated(t)
	var address atomic.Value
	address.Store(server.Address)
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: address.Load().(string)})
		},
		ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(front.Close)
	u := startBrowser(t).open(t, front.URL+"/")
	u.chooseInterval("1")
	u.await(`document.querySelectorAll("#values data.value").length > 0`)
	server.Kill(t)
	u.await(`document.getElementById("problem").textContent.startsWith("The exporter does not answer")`)
	assert.NotEmpty(t, u.rows(), "the last values stay")
	u.forgive("Failed to load resource")
	server.Restart(t)
	address.Store(server.Address)
	u.await(`document.getElementById("problem").textContent.includes("here no more")`)
	r := mpittest.New(mpittest.Everything())
	require.NoError(t, r.Connect(t.Context(), server.Socket))
	t.Cleanup(r.Kill)
	u.await(`document.getElementById("problem").hidden`)
}

// The page works behind a proxy that gives the exporter a path of its own.
func TestPageBehindAPath(t *testing.T) {
	t.Parallel()
	server := simulated(t)
	front := httptest.NewServer(http.StripPrefix("/nodes/7",
		httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server.Address})))
	t.Cleanup(front.Close)
	u := startBrowser(t).open(t, front.URL+"/nodes/7/")
	u.await(`document.querySelectorAll("#values data.value").length > 0`)
	assert.Contains(t, evaluate[[]string](u, `[...document.querySelectorAll("footer a")].map((a) => a.href)`),
		front.URL+"/nodes/7/metrics")
}

// The page works with TLS and a password, as --web.config.file sets them.
func TestPageWithTLSAndAPassword(t *testing.T) {
	t.Parallel()
	dir := suite.Dir(t)
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	borrowed := httptest.NewTLSServer(nil)
	borrowed.Close()
	certificate := borrowed.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	require.NoError(t, err)
	config := file("web.yml", fmt.Appendf(nil, "tls_server_config: {cert_file: %s, key_file: %s}\nbasic_auth_users: "+
		"{alice: %s}\n",
		file("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})),
		file("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), hash))
	addresses, socket := filepath.Join(dir, "address"), filepath.Join(dir, "s")
	suite.Start(t, []string{
		suite.Binary(), "--agent.socket=" + socket, "--web.listen-address=127.0.0.1:0",
		"--web.address-file=" + addresses, "--web.config.file=" + config,
	}, nil)
	r := mpittest.New(mpittest.Everything())
	t.Cleanup(r.Kill)
	var address string
	harness.Await(t, "the exporter", func(ctx context.Context) error {
		line, err := os.ReadFile(addresses)
		if err != nil {
			return err
		}
		address = "https://" + strings.TrimSpace(string(line)) + "/"
		return r.Connect(ctx, socket)
	})
	u := startBrowser(t).prepare(t, address)
	u.login("alice", "secret")
	u.navigate(address)
	u.await(`document.querySelectorAll("#values data.value").length > 0`)
	assert.Empty(t, u.wrong())
}

// Without scripts the links are there, and what the page is for.
func TestPageWithoutScripts(t *testing.T) {
	t.Parallel()
	server := simulated(t)
	u := startBrowser(t).open(t, server.URL("/"), command(emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}))
	text := evaluate[string](u, `document.body.innerText`)
	assert.Contains(t, text, "The live page needs JavaScript")
	assert.NotContains(t, text, "Variables of one rank", "nothing that stays empty")
	for _, path := range evaluate[[]string](u,
		`[...document.querySelectorAll("footer a")].map((a) => a.getAttribute("href"))`) {
		_, _ = server.Get(t, "/"+path, "")
	}
}

// With nobody there it says what to do.
func TestEmptyNode(t *testing.T) {
	t.Parallel()
	server := suite.Exporter(t)
	u := startBrowser(t).open(t, server.URL("/"))
	u.chooseInterval("1")
	u.await(`document.body.innerText.includes("No MPI process is connected")`)
	u.await(`document.querySelector("#no-jobs code").textContent === "mpit-exporter exec --calls --socket=` + server.Socket + ` --"`)
	r := mpittest.New(mpittest.Everything())
	require.NoError(t, r.Connect(t.Context(), server.Socket))
	t.Cleanup(r.Kill)
	u.await(`document.querySelectorAll("#values data.value").length > 0 && !document.body.innerText.includes("No MPI process")`)
}
