package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

// controlTimeout is longer than the exporter takes for anything, old values put back included.
const controlTimeout = 2 * time.Minute

const maxAnswer = 256 << 20 // bytes of an answer on the control socket

// SocketHelp is the help of a flag that fills Control.Socket.
const SocketHelp = "Control socket of the exporter (default: control.sock beside $" + sockets.EnvSocket +
	", or where an exporter has it by default)."

// Control asks the exporter on this node over its control socket.
type Control struct {
	Socket string // of the exporter; empty: where one has it
}

// places are the paths at which a control socket may be.
func (c *Control) places() []string {
	if c.Socket != "" {
		return []string{c.Socket}
	}
	if agent := os.Getenv(sockets.EnvSocket); agent != "" {
		return []string{sockets.ControlBeside(agent)}
	}
	return sockets.Places(sockets.ControlFile)
}

// dial connects to the first of the places at which somebody listens.
func (c *Control) dial(ctx context.Context) (net.Conn, error) {
	places := c.places()
	for _, path := range places {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		default:
			return nil, fmt.Errorf("connecting to the exporter at %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("no exporter answers at %s; start one on this node, or say with --control.socket where it "+
		"listens", strings.Join(places, " or "))
}

// Transport brings any request to the exporter, whatever host it names: the socket is the address.
func (c *Control) Transport() *http.Transport {
	return transport(func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) })
}

func transport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{DialContext: dial, DisableKeepAlives: true}
}

// Ask sends a request and hands the answer to decode, which says whether it is one of an exporter's.
func (c *Control) Ask(ctx context.Context, method, path string, body []byte, decode func(text []byte) bool) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://control"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: c.Transport()}).Do(request)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err // the address says nothing to a user
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the exporter's answer: %w", err)
	}
	if !decode(text) {
		return fmt.Errorf("what listens there does not answer like an mpit-exporter: %s: %s", response.Status,
			answerError(text))
	}
	return nil
}
