package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// prototypes is what test/prototypes.cpp compares with an mpi.h: each function, the kinds of its arguments in order.
func prototypes(functions []function) []byte {
	conditions := map[string]string{
		"":    "",
		"4.0": "#if MPI_VERSION >= 4\n",
		"4.1": "#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)\n",
	}
	var b bytes.Buffer
	b.WriteString(madeFrom)
	for _, f := range functions {
		for _, w := range f.wrappers {
			condition := conditions[w.since]
			if w.extension {
				condition = "#ifdef HAVE_PERSISTENT_COLLECTIVES\n"
			}
			b.WriteString(condition)
			kinds := []string{"is_returns_code"}
			for _, p := range f.parameters {
				kinds = append(kinds, declaredKind(p, w))
			}
			fmt.Fprintf(&b, "BOTH(%s, %s)\n", w.symbol, strings.Join(kinds, ", "))
			if condition != "" {
				b.WriteString("#endif\n")
			}
		}
	}
	return b.Bytes()
}

func declaredKind(p parameter, w wrapper) string {
	switch {
	case w.wide && p.kind == kindCount:
		return "is_" + string(kindWideCount)
	case w.wide && (p.kind == kindCounts || p.kind == kindUnit || p.kind == kindDisplace):
		return "is_wide_" + string(p.kind)
	default:
		return "is_" + string(p.kind)
	}
}

// passed is what test/wrappers_test.c calls each wrapper by: PASSED(symbol, arguments, their types in brackets, as
// many of A1 … in brackets, function, bind, position of the object, of a status that the wrapper may take the place
// of). Positions count from 1; 0: there is none.
func passed(functions []function) []byte {
	var b bytes.Buffer
	b.WriteString(madeFrom)
	for _, f := range functions {
		handleAt, statusAt := 0, 0
		_, handle := object(f.parameters)
		var given []string
		for i, p := range f.parameters {
			given = append(given, fmt.Sprintf("A%d", i+1))
			if p.name == handle {
				handleAt = i + 1
			}
			if p.role == "status" && f.movement.needsStatus() {
				statusAt = i + 1
			}
		}
		types := list(slices.Repeat([]string{"intptr_t"}, len(f.parameters)))
		for _, w := range f.wrappers {
			for _, symbol := range []string{w.symbol, "P" + w.symbol} {
				fmt.Fprintf(&b, "PASSED(%s, %d, (%s), (%s), %s, %s, %d, %d)\n",
					symbol, len(f.parameters), types, strings.Join(given, ", "), f.number(), f.bind, handleAt,
					statusAt)
			}
		}
	}
	return b.Bytes()
}
