package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{certificate, key}
}

// sign makes a certificate for 127.0.0.1, or for a client, and its key.
func (a *authority) sign(t *testing.T, serial int64, usage x509.ExtKeyUsage) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "a test"},
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, a.certificate, &private.PublicKey, a.key)
	require.NoError(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// client trusts the authority, and shows a certificate of another one's, unless that is nil. Each request has a
// connection of its own.
func (a *authority) client(t *testing.T, of *authority) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	config := &tls.Config{RootCAs: roots}
	if of != nil {
		certificate, key := of.sign(t, 1, x509.ExtKeyUsageClientAuth)
		pair, err := tls.X509KeyPair(certificate, key)
		require.NoError(t, err)
		// whoever is asked for
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: config,
		DisableKeepAlives: true}}
}

// replaceFile puts a new file into an old one's place, as who renews certificates does.
func replaceFile(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// basicAuth is a line of a web configuration.
func basicAuth(t *testing.T, user, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	require.NoError(t, err)
	return "basic_auth_users: {" + user + ": '" + string(hash) + "'}\n"
}

const serverTLS = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"

// secured is a directory with a certificate and a web configuration.
func secured(t *testing.T, a *authority, config string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	certificate, key := a.sign(t, 7, x509.ExtKeyUsageServerAuth)
	for name, text := range map[string][]byte{"cert.pem": certificate, "key.pem": key, "web.yaml": []byte(config)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return dir, filepath.Join(dir, "web.yaml")
}

// startSecured starts an exporter that speaks TLS, behind Landlock where the kernel has it.
func startSecured(t *testing.T, file string, args ...string) *exporterProcess {
	t.Helper()
	e := launchExporter(t, t.TempDir(), exec.Command(binary(t)), filepath.Join(mpittest.ShortDir(t), "agent.sock"),
		append([]string{"--web.config.file=" + file}, args...)...)
	e.url = strings.Replace(e.url, "http://", "https://", 1)
	return e
}

// ask makes a request as a user, or as nobody.
func ask(t *testing.T, client *http.Client, method, url, user, password string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	if user != "" {
		request.SetBasicAuth(user, password)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	return response, response.Body.Close()
}

// TestPasswords: with basic_auth_users no page is shown to who has no password, and nobody else's rules are read
// anew.
func TestPasswords(t *testing.T) {
	a := newAuthority(t)
	_, file := secured(t, a, serverTLS+basicAuth(t, "prometheus", "right"))
	e := startSecured(t, file, "--web.enable-lifecycle", "--web.enable-pprof")
	client := a.client(t, nil)
	for _, page := range []struct{ method, path string }{
		{http.MethodGet, "/"}, {http.MethodGet, "/metrics"}, {http.MethodGet, "/api/v1/ranks"},
		{http.MethodGet, "/-/healthy"}, {http.MethodGet, "/-/ready"},
		{http.MethodPost, "/-/reload"}, {http.MethodGet, "/debug/pprof/"},
	} {
		for _, who := range []struct {
			user, password string
			status         int
		}{
			{"prometheus", "right", http.StatusOK}, {"prometheus", "wrong", http.StatusUnauthorized},
			{"prometheus", "", http.StatusUnauthorized},
			{"root", "right", http.StatusUnauthorized}, {"", "", http.StatusUnauthorized},
		} {
			response, err := ask(t, client, page.method, e.url+page.path, who.user, who.password)
			require.NoError(t, err)
			assert.Equal(t, who.status, response.StatusCode, "%s %s as %q with %q", page.method, page.path, who.user,
				who.password)
		}
	}
	response, err := ask(t, client, http.MethodGet, e.url+"/metrics", "", "")
	require.NoError(t, err)
	assert.Contains(t, response.Header.Get("WWW-Authenticate"), "Basic")
}

// TestOnlyTLS: who speaks no TLS, an old one, or doesn't trust the certificate gets nothing.
func TestOnlyTLS(t *testing.T) {
	a := newAuthority(t)
	_, file := secured(t, a, serverTLS)
	e := startSecured(t, file)
	response, err := ask(t, a.client(t, nil), http.MethodGet, e.url+"/metrics", "", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, response.StatusCode)

	response, err = ask(t, a.client(t, nil), http.MethodGet, strings.Replace(e.url, "https", "http", 1)+"/metrics",
		"", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	_, err = ask(t, newAuthority(t).client(t, nil), http.MethodGet, e.url+"/metrics", "", "")
	require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
	old := a.client(t, nil)
	config := old.Transport.(*http.Transport).TLSClientConfig
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	_, err = ask(t, old, http.MethodGet, e.url+"/metrics", "", "")
	assert.ErrorContains(t, err, "protocol version")
}

// TestClientCertificates: where they are asked for, one of the right authority is needed.
func TestClientCertificates(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	dir, file := secured(t, a, "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_auth_type: "+
		"RequireAndVerifyClientCert, client_ca_file: ca.pem}\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), a.pem(), 0o600))
	e := startSecured(t, file, "--web.enable-lifecycle")
	for _, page := range []struct{ method, path string }{{http.MethodGet, "/metrics"},
		{http.MethodPost, "/-/reload"}} {
		response, err := ask(t, a.client(t, a), page.method, e.url+page.path, "", "")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, response.StatusCode, page.path)
		_, err = ask(t, a.client(t, other), page.method, e.url+page.path, "", "")
		require.ErrorContains(t, err, "remote error: tls: ", page.path)
		_, err = ask(t, a.client(t, nil), page.method, e.url+page.path, "", "")
		require.ErrorContains(t, err, "remote error: tls: certificate required", page.path)
	}
}

// TestRenewal: certificates and passwords that are replaced hold for the next connection, behind Landlock too.
func TestRenewal(t *testing.T) {
	a := newAuthority(t)
	dir, file := secured(t, a, serverTLS+basicAuth(t, "prometheus", "old"))
	e := startSecured(t, file)
	serial := func(password string, status int) int64 {
		response, err := ask(t, a.client(t, nil), http.MethodGet, e.url+"/metrics", "prometheus", password)
		require.NoError(t, err)
		assert.Equal(t, status, response.StatusCode)
		return response.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	assert.Equal(t, int64(7), serial("old", http.StatusOK))
	certificate, key := a.sign(t, 8, x509.ExtKeyUsageServerAuth)
	replaceFile(t, filepath.Join(dir, "cert.pem"), certificate)
	replaceFile(t, filepath.Join(dir, "key.pem"), key)
	replaceFile(t, file, []byte(serverTLS+basicAuth(t, "prometheus", "new")))
	assert.Equal(t, int64(8), serial("new", http.StatusOK))
	serial("old", http.StatusUnauthorized)
}

// TestProfiles are there for who has asked for them.
func TestProfiles(t *testing.T) {
	t.Parallel() // it waits for a profile
	for _, test := range []struct {
		args   []string
		status int
	}{{nil, http.StatusNotFound}, {[]string{"--web.enable-pprof"}, http.StatusOK}} {
		e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"), test.args...)
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol",
			"/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=0.1"} {
			status, _ := e.get(t, path)
			assert.Equal(t, test.status, status, "%s with %v", path, test.args)
		}
	}
}
