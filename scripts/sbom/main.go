// Command sbom writes a software bill of materials, in CycloneDX's JSON, of the Go program of which it reads on
// standard input what `go version -m -json` says. The same input and flags make the same bytes.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"strings"
	"time"
)

// document is the part of CycloneDX 1.5 that is used.
type document struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

func main() {
	version := flag.String("version", "", "the program's version")
	epoch := flag.Int64("epoch", 0, "when it was made, in seconds since 1970")
	flag.Parse()
	if err := write(os.Stdout, os.Stdin, *version, time.Unix(*epoch, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, r io.Reader, version string, made time.Time) error {
	var build debug.BuildInfo
	if err := json.NewDecoder(r).Decode(&build); err != nil {
		return fmt.Errorf("reading what go version -m -json says: %w", err)
	}
	program := library(build.Main.Path, version, "")
	program.Type, program.Name = "application", path.Base(build.Path)
	bom := document{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{
		Timestamp: made.UTC().Format(time.RFC3339), Component: program}}
	// By this name vulnerability databases know Go's own library.
	bom.Components = append(bom.Components, library("stdlib", strings.TrimPrefix(build.GoVersion, "go"), ""))
	for _, module := range build.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		bom.Components = append(bom.Components, library(module.Path, module.Version, module.Sum))
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(bom)
}

// library describes a module with its sum as go.sum has it, "h1:" and the SHA-256 of the module's hashes in base64.
func library(name, version, sum string) component {
	// A + would be read as a space.
	purl := "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := component{Ref: purl, Type: "library", Name: name, Version: version, PURL: purl}
	digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err == nil && len(digest) > 0 {
		c.Hashes = []hash{{Algorithm: "SHA-256", Content: hex.EncodeToString(digest)}}
	}
	return c
}
