package node

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	lowlevel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// Rights that the rules give. All other dealings with files that Landlock knows of are refused: to write, truncate,
// make, link, rename.
const (
	mayRead landlock.AccessFSSet = lowlevel.AccessFSReadFile | lowlevel.AccessFSReadDir
	// of a rule for a file, which can't have a directory's rights
	mayReadOne landlock.AccessFSSet = lowlevel.AccessFSReadFile
	mayRun     landlock.AccessFSSet = mayRead | lowlevel.AccessFSExecute
	mayUse     landlock.AccessFSSet = lowlevel.AccessFSReadFile | lowlevel.AccessFSWriteFile
	// mayListen: to make a socket in a directory, and to remove one that is dead. The directory is opened for its
	// lock.
	mayListen landlock.AccessFSSet = lowlevel.AccessFSReadDir | lowlevel.AccessFSMakeSock | lowlevel.AccessFSRemoveFile
	mayRemove landlock.AccessFSSet = lowlevel.AccessFSRemoveFile
	mayRmdir  landlock.AccessFSSet = lowlevel.AccessFSRemoveDir
	// mayWrite: files that are written beside their place and renamed.
	mayWrite landlock.AccessFSSet = mayRead | lowlevel.AccessFSWriteFile | lowlevel.AccessFSTruncate |
		lowlevel.AccessFSMakeReg | lowlevel.AccessFSMakeDir | lowlevel.AccessFSRemoveFile | lowlevel.AccessFSRefer
)

// Needs is what the exporter has to do with files once it serves: the kernel refuses all else (Landlock;
// docs/security.md). Whoever lets it read, write or remove something more must name it here.
type Needs struct {
	Rules []string // rule files and directories of such, which are read again
	// WebConfig is a --web.config.file, which is read again with the files that it names; empty: none.
	WebConfig string
	Sockets   []string // that it makes again when their files are gone, and removes
	Dirs      []string // that it has made and removes at its end
	Removed   []string // files that it removes at its end
	Written   []string // files that it writes anew, with others and directories beside them
	Programs  []string // files whose symbols it reads

	Receiver     bool     // it connects to a receiver of OTLP
	Certificates []string // files that it reads for that
}

// reads are the directories that are read with all that is in them. resolver names what tells addresses of names, where
// a receiver of OTLP is to be found; of the links in /etc among them, which have rules of their own there, it is where
// they lead to, such as /run/systemd/resolve, so that a file there can be read when it has been replaced.
func (n *Needs) reads(resolver []string, environ func(name string) string) (places []string) {
	var files []string
	for _, path := range n.Rules {
		places = append(places, placesOfRules(path)...)
	}
	if n.WebConfig != "" {
		files = append(TLSFiles(n.WebConfig), n.WebConfig)
	}
	if n.Receiver {
		files = append(append(files, environ("SSL_CERT_FILE")), n.Certificates...)
		for _, dir := range filepath.SplitList(environ("SSL_CERT_DIR")) {
			if dir, err := filepath.Abs(dir); err == nil {
				places = append(places, dir)
			}
		}
		for _, path := range resolver {
			if target, err := filepath.EvalSymlinks(path); err == nil && !strings.HasPrefix(target, "/etc/") {
				places = append(places, filepath.Dir(target))
			}
		}
		places = append(places, authorityDirs...)
	}
	for _, path := range files {
		if path != "" {
			places = append(places, placesOf(path)...)
		}
	}
	return sorted(places)
}

func dirsOf(paths []string) []string {
	var dirs []string
	for _, path := range paths {
		dirs = append(dirs, filepath.Dir(path))
	}
	return sorted(dirs)
}

// Where Go's TLS looks for the system's authorities, and where files are that links in /etc lead to which a resolver
// reads.
var (
	authorityFiles = []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	}
	authorityDirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs"}
	resolverFiles = []string{"/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf"}
)

func sorted(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// placesOf is where a file is to be looked for, now and after it has been replaced: a rule of Landlock holds for a
// file itself and not for its name, but for whatever comes to lie in a directory. Where the path is a link, it is the
// target's directory as well.
func placesOf(path string) []string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	places := []string{filepath.Dir(absolute)}
	if target, err := filepath.EvalSymlinks(absolute); err == nil {
		places = append(places, filepath.Dir(target))
	}
	return places
}

// placesOfRules is the same of a rule file, or of a directory of such.
func placesOfRules(path string) []string {
	files, err := rules.Files(path)
	if err != nil || slices.Contains(files, path) {
		return placesOf(path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	places := []string{absolute}
	for _, file := range files {
		places = append(places, placesOf(file)...)
	}
	return places
}

// WebConfig reads a --web.config.file; of one that can't be read nothing is known. exporter-toolkit has checked it, and
// reads it anew for each connection and request.
func WebConfig(path string) (c web.Config) {
	text, err := os.ReadFile(path)
	if err != nil || yaml.Unmarshal(text, &c) != nil {
		return web.Config{}
	}
	c.TLSConfig.SetDirectory(filepath.Dir(path))
	return c
}

// TLSFiles are the files that a --web.config.file names.
func TLSFiles(webConfig string) []string {
	of := WebConfig(webConfig).TLSConfig
	files := []string{of.TLSCertPath, of.TLSKeyPath, of.ClientCAs}
	return slices.DeleteFunc(files, func(path string) bool { return path == "" })
}

// What getent(1) needs to turn a user's number into a name (UserName), through whatever directory service the
// node is set up for.
var (
	programDirs = []string{"/bin", "/lib", "/lib32", "/lib64", "/usr"}
	serviceDirs = []string{"/run/nscd", "/run/systemd/userdb", "/var/cache/nscd", "/var/lib/sss/mc",
		"/var/lib/sss/pipes"}
	// nameFiles are for root, whose /etc has files that nobody else can read. Once one of them is replaced, as adding
	// a user does, it can't be read any more: then users of that file have numbers.
	nameFiles = []string{
		"/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/ldap.conf", "/etc/ldap/ldap.conf",
		"/etc/nslcd.conf",
		"/etc/nsswitch.conf", "/etc/openldap/ldap.conf", "/etc/passwd", "/etc/resolv.conf",
	}
)

// rules are Landlock's, for an exporter of a user who reads these directories. What can't be found now is left out: it
// could not be read later either.
func (n *Needs) rules(uid int, reads []string) []landlock.Rule {
	rules := []landlock.Rule{
		landlock.PathAccess(mayRead, "/proc"),
		landlock.PathAccess(mayUse, os.DevNull), // of programs that are run
		landlock.PathAccess(mayRun, present(programDirs)...),
		landlock.PathAccess(mayRead, present(serviceDirs)...),
		landlock.PathAccess(mayRead, present(reads)...),
		landlock.PathAccess(mayReadOne, present(n.Programs)...),
		landlock.PathAccess(mayListen, present(dirsOf(n.Sockets))...),
		landlock.PathAccess(mayRemove, present(dirsOf(n.Removed))...),
		landlock.PathAccess(mayRmdir, present(dirsOf(n.Dirs))...),
		landlock.PathAccess(mayWrite, present(dirsOf(n.Written))...),
	}
	if n.Receiver {
		rules = append(rules, landlock.PathAccess(mayReadOne, present(authorityFiles)...))
	}
	if uid == 0 {
		rules = append(rules, landlock.PathAccess(mayReadOne, present(nameFiles)...))
	} else {
		rules = append(rules, landlock.PathAccess(mayRead, present([]string{"/etc"})...))
	}
	return rules
}

// present are those of the paths that can be found: one that can't would keep all rules from being made.
func present(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
}

// raise puts a fence of such rules up, for all threads, for good, as far as the kernel can. The version is that of the
// kernel's Landlock; 0: it has none, and the error says why.
func raise(rules []landlock.Rule) (version int, err error) {
	version, err = lowlevel.LandlockGetABIVersion()
	switch {
	case err == nil:
	case errors.Is(err, syscall.ENOSYS):
		return 0, errors.New("not supported by this kernel: Linux 5.13 has it, where it is built in")
	case errors.Is(err, syscall.EOPNOTSUPP):
		return 0, errors.New("not supported by this kernel as it was started: landlock is missing in lsm= on its " +
			"command line")
	default:
		return 0, fmt.Errorf("the kernel refuses it, as containers' filters of system calls do: %w", err)
	}
	// Version 5 has all of files. Later ones would keep this process from sockets of directory services and systemd,
	// and from signals between its own threads on kernels before 6.15. The network is not restricted: RestrictPaths
	// leaves it alone.
	if err := landlock.V5.BestEffort().RestrictPaths(rules...); err != nil {
		return 0, fmt.Errorf("restricting files: %w", err)
	}
	return version, nil
}

// raiseFence leaves the exporter what it needs and takes all else away, for good, unless that is not wanted; the log
// and a metric say what came of it. That the kernel can't keeps nobody from serving.
func raiseFence(wanted bool, needs Needs, logger *slog.Logger, registry prometheus.Registerer) {
	version := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mpit_exporter_landlock_abi",
		Help: "Version of the kernel's Landlock that restricts which files this process can use; 0: none does.",
	})
	registry.MustRegister(version)
	if !wanted {
		logger.Info("Landlock is switched off", "flag", "--no-landlock")
		return
	}
	reads := needs.reads(resolverFiles, os.Getenv)
	abi, err := raise(needs.rules(os.Geteuid(), reads))
	if err != nil {
		logger.Warn("Going on without Landlock", "reason", err)
		return
	}
	version.Set(float64(abi))
	logger.Info("Landlock is in force", "abi", abi, "reads", strings.Join(reads, ","), "listens",
		strings.Join(dirsOf(needs.Sockets), ","))
}
