package httpserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/mdlayher/vsock"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

// Listen opens all addresses, or takes what systemd hands over. The addresses are opened here and not by the toolkit,
// because who asks for port 0 wants to know which one it became.
func Listen(flags *web.FlagConfig) (listeners []net.Listener, err error) {
	if *flags.WebSystemdSocket {
		listeners, err = activation.Listeners()
		if err == nil && len(listeners) == 0 {
			err = errors.New("systemd has handed over no socket; start from a .socket unit or leave " +
				"--web.systemd-socket out")
		}
		return listeners, err
	}
	for _, address := range *flags.WebListenAddresses {
		l, err := listenAddress(address)
		if err != nil {
			CloseAll(listeners)
			return nil, listenError(address, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func listenAddress(address string) (net.Listener, error) {
	if !strings.HasPrefix(address, "vsock://") {
		return net.Listen("tcp", address)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(u.Port(), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("port of %s: %w", address, err)
	}
	return vsock.Listen(uint32(port), nil)
}

// listenError says which address could not be opened, why, and what to do.
func listenError(address string, err error) error {
	const remedy = "choose another address with --web.listen-address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: the address is in use; stop what holds it or %s", address, remedy)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot listen on %s: permission denied; %s", address, remedy)
	}
	return fmt.Errorf("cannot listen on %s: %w; %s", address, err, remedy)
}

// CloseAll closes listeners.
func CloseAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// WriteAddresses writes the addresses of the listeners into a file, one in a line.
func WriteAddresses(path string, listeners []net.Listener) error {
	var b strings.Builder
	for _, l := range listeners {
		fmt.Fprintln(&b, l.Addr())
	}
	if err := cli.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("--web.address-file: %w", err)
	}
	return nil
}
