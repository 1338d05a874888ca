package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// completeTLS reads the files. Client certificates are read again at each handshake, as they are often renewed under
// the same name.
func (cfg *Config) completeTLS(e environ, done *settings) error {
	authority := e.pick(cfg.Certificate, "certificate", "CERTIFICATE")
	cert, key := e.pick(cfg.ClientCert, "client-certificate", "CLIENT_CERTIFICATE"),
		e.pick(cfg.ClientKey, "client-key", "CLIENT_KEY")
	cfg.Certificate, cfg.ClientCert, cfg.ClientKey = authority.text, cert.text, key.text
	if done.endpoint.plain {
		for _, v := range []setting{authority, cert, key} {
			if v.text != "" {
				return fmt.Errorf("%s is set, but %s is not encrypted: write https://, or leave the file out",
					v.name, done.endpoint.shown)
			}
		}
		return nil
	}
	done.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if authority.text != "" {
		pem, err := os.ReadFile(authority.text)
		if err != nil {
			return fmt.Errorf("%s: %w: name a file with certificates in PEM that can be read", authority.name, err)
		}
		done.tls.RootCAs = x509.NewCertPool()
		if !done.tls.RootCAs.AppendCertsFromPEM(pem) {
			return authority.wrong("holds no certificate: it must be in PEM, with BEGIN CERTIFICATE")
		}
	}
	switch {
	case cert.text == "" && key.text == "":
		return nil
	case key.text == "":
		return fmt.Errorf("%s is set, but not the file with its key: set %s", cert.name, key.name)
	case cert.text == "":
		return fmt.Errorf("%s is set, but not the file with its certificate: set %s", key.name, cert.name)
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert.text, key.text)
		return &pair, err
	}
	if _, err := load(); err != nil {
		var denied *os.PathError
		if errors.As(err, &denied) {
			return fmt.Errorf("%s, %s: %w: name files in PEM that can be read", cert.name, key.name, err)
		}
		return fmt.Errorf("%s, %s: %w: name a certificate in PEM and the key that belongs to it", cert.name,
			key.name, err)
	}
	done.tls.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := load()
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		return pair, nil
	}
	return nil
}
