package preload

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

// The libraries that are preloaded into programs: the agent, and the call profile, which is of use beside the agent
// only.
const (
	AgentLibraryName = "libmpit-agent.so"
	CallsLibraryName = "libmpit-calls.so"
)

// library is one that is preloaded.
type library struct{ what, file, env string } // for errors; its name; the variable that names another

var (
	agentLibrary = library{"agent library", AgentLibraryName, EnvLibrary}
	callsLibrary = library{"call profile's library", CallsLibraryName, EnvCallsLibrary}
)

// find returns the absolute path of the library: where its variable says, in one of the directories near, beside the
// program, or in ../lib/mpit-exporter/ of it.
func (l library) find(named, executable string, near ...string) (string, error) {
	var places []string
	if named != "" {
		path, err := filepath.Abs(named)
		if err != nil {
			return "", fmt.Errorf("%s: %w", l.env, err)
		}
		places = []string{path}
	} else {
		dir := filepath.Dir(executable)
		for _, dir := range append(near, dir, filepath.Join(filepath.Dir(dir), "lib", cli.ProgramName)) {
			if path := filepath.Join(dir, l.file); !slices.Contains(places, path) {
				places = append(places, path)
			}
		}
	}
	i := slices.IndexFunc(places, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular()
	})
	switch {
	case i < 0 && named != "":
		return "", fmt.Errorf("%s: %s, which %s names, is not there; correct or unset it", l.what, places[0], l.env)
	case i < 0:
		return "", fmt.Errorf("%s %s not found (looked for %s); build it with make, or name it in %s",
			l.what, l.file, strings.Join(places, " and "), l.env)
	case strings.ContainsAny(places[i], " :$"):
		// ld.so splits LD_PRELOAD at spaces and colons, and expands what follows a dollar; there is no way to quote.
		return "", fmt.Errorf("%s: the path %q has a space, colon or dollar in it, which %s can't express; move it, "+
			"or name a link to it in %s",
			l.what, places[i], EnvPreload, l.env)
	}
	return places[i], nil
}
