package rules

import (
	"embed"
	"fmt"
	"io/fs"
)

// defaultFiles are the rules that are shipped: what MPI libraries are known to declare otherwise than it is.
//
//go:embed defaults/*.yaml
var defaultFiles embed.FS

// DefaultFiles returns the files of shipped rules, for somebody to read. Their names are those of Source.
func DefaultFiles() fs.FS { return defaultFiles }

// Defaults is the rules that are shipped. The caller owns the slice, and may put rules of its own before it. It
// panics where an embedded file is broken, which a test rules out.
func Defaults() []Rule {
	files, err := fs.Glob(defaultFiles, "defaults/*.yaml")
	if err != nil {
		panic(err)
	}
	var rules []Rule
	for _, name := range files {
		text, err := fs.ReadFile(defaultFiles, name)
		if err != nil {
			panic(err)
		}
		f, err := Parse(name, text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
		rules = append(rules, f.Rules...)
	}
	return rules
}
