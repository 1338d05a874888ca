// Generate makes the C code of libmpit-calls.so that stands in front of MPI's functions, from the table
// functions.txt.
//
//	go run ./mpit/agent/calls/generate -table mpit/agent/calls/functions.txt -out build/calls
//
// It writes functions.h and functions.c (the table as the runtime sees it), wrappers_*.c (one file for each section
// of the table), and for the tests prototypes.inc and passed.inc. It needs no mpi.h. A file whose content is right
// already is left alone, so that make has nothing to do.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	table := flag.String("table", "functions.txt", "the table of functions")
	out := flag.String("out", "", "the directory that the files are written to")
	flag.Parse()
	if err := run(*table, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(table, out string) error {
	if out == "" {
		return errors.New("no directory to write to: give -out")
	}
	text, err := os.ReadFile(table)
	if err != nil {
		return fmt.Errorf("reading the table of functions: %w", err)
	}
	functions, err := parseTable(filepath.Base(table), string(text))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("making the directory for what is generated: %w", err)
	}
	for name, content := range generate(functions) {
		if err := write(filepath.Join(out, name), content); err != nil {
			return fmt.Errorf("writing what is generated: %w", err)
		}
	}
	return nil
}

// generate is the files' contents by their names.
func generate(functions []function) map[string][]byte {
	files := map[string][]byte{
		"functions.h":    functionsHeader(functions),
		"functions.c":    functionsSource(functions),
		"prototypes.inc": prototypes(functions),
		"passed.inc":     passed(functions),
	}
	for _, s := range sections(functions) {
		files[wrappersFile(s)] = wrappersSource(s, functions)
	}
	return files
}

func write(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(path, content, 0o600)
}
