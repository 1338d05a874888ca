package own

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

// target is an entry of a file for Prometheus' file_sd_configs.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// sdLabels are what a relabel_config can use. They are not the series' own labels by purpose: Prometheus would rename
// the rank's jobid to exported_jobid for a target that has a label of that name.
func sdLabels(o *order, scheme, path string) map[string]string {
	labels := map[string]string{
		"__meta_mpit_jobid": o.JobID,
		"__meta_mpit_world": o.World,
		"__meta_mpit_host":  o.Host,
		"__meta_mpit_uid":   strconv.Itoa(os.Geteuid()),
		"__scheme__":        scheme,
		"__metrics_path__":  path,
	}
	if u, err := user.Current(); err == nil {
		labels["__meta_mpit_user"] = u.Username
	}
	return labels
}

// sdPath is the file of one launch on one node.
func sdPath(dir, host, key string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '_'
	}, host)
	return filepath.Join(dir, fmt.Sprintf("%s-%s-%s.json", cli.ProgramName, clean, key))
}

// writeSD writes the file. Prometheus reads *.json, and doesn't see it before it is whole.
func writeSD(path string, t target) error {
	text, err := json.Marshal([]target{t})
	if err != nil {
		return fmt.Errorf("--own.sd-dir: %w", err)
	}
	if err := cli.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("--own.sd-dir: %w; make the directory or name another", err)
	}
	return nil
}

// writable is a warning if others can write in a directory for targets.
func writable(dir string) []string {
	about, err := os.Stat(dir)
	if err != nil || about.Mode().Perm()&0o022 == 0 {
		return nil // if it isn't there, writing says so
	}
	return []string{fmt.Sprintf("--own.sd-dir: others can write in %s (mode %04o), and Prometheus scrapes what they put "+
		"there; chmod go-w unless you trust them", dir, about.Mode().Perm())}
}

// addresses are what a scraper in the cluster can connect to: this host's name in the place of "all interfaces".
func addresses(listeners []net.Listener, host string) []string {
	var all []string
	for _, l := range listeners {
		tcp, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		name := tcp.IP.String()
		if tcp.IP.IsUnspecified() {
			name = host
		}
		all = append(all, net.JoinHostPort(name, strconv.Itoa(tcp.Port)))
	}
	return all
}
