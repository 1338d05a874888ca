package rules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Problem is what is wrong at one place of a rule file.
type Problem struct {
	File         string // as it was given
	Line, Column int    // from 1; 0: of the file as a whole
	What         string // what is wrong; and what to write instead
}

// Error is the problem in one line: file:line:column: what is wrong; what to write.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	for _, n := range []int{p.Line, p.Column} {
		if n > 0 {
			b.WriteString(":" + strconv.Itoa(n))
		}
	}
	b.WriteString(": " + p.What)
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(b.String()) // whatever stands in the file: one line
}

// Problems is all that is wrong with rule files, in the order of the files and of their lines. Parse and Load return
// no other error; errors.As finds them.
type Problems []Problem

// Error has a line for each problem.
func (ps Problems) Error() string { return strings.Join(ps.Lines(), "\n") }

// Lines is a line for each problem, which begins with its place, as editors and scripts expect it.
func (ps Problems) Lines() []string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return lines
}

// complain says what is wrong with a value, wherever that stands, and what to do; what is a format of fmt.
func complain(remedy, what string, args ...any) error {
	return fmt.Errorf("%w; %s", fmt.Errorf(what, args...), remedy)
}

// finding is a complaint about a property or a match of one rule.
type finding struct {
	key string // "match.library[1]", "class" …; "": the rule
	err error
}

type findings []finding

// note adds what is wrong with a key, if err says so; else it returns true.
func (fs *findings) note(key string, err error) bool {
	if err != nil {
		*fs = append(*fs, finding{key, err})
	}
	return err == nil
}

// joined is all of them as one error; nil: there are none.
func (fs findings) joined() error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f.err
		if f.key != "" {
			errs[i] = fmt.Errorf("%s: %w", f.key, f.err)
		}
	}
	return errors.Join(errs...)
}

// because says what is wrong at a place, as complain does.
func (p Problem) because(remedy, what string, args ...any) Problem {
	p.What = complain(remedy, what, args...).Error()
	return p
}

// oneOf is the remedy for a word that is none of those that are known.
func oneOf(known []string) string { return "write one of " + strings.Join(known, ", ") }
