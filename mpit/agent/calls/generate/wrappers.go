package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const madeFrom = "/* Made from functions.txt by generate/: change those. */\n"

// functionsHeader is functions.h: what the runtime knows of the functions.
func functionsHeader(functions []function) []byte {
	var b bytes.Buffer
	b.WriteString(madeFrom + `#ifndef MPIT_CALLS_FUNCTIONS_H
#define MPIT_CALLS_FUNCTIONS_H

#include <stdbool.h>

/* A function that calls are counted as. out, in: the directions that its bytes have; NULL: none. */
struct function {
	const char *name;
	int bind; /* BIND_NONE, BIND_COMM, BIND_WIN or BIND_FILE */
	const char *out, *in;
	unsigned activity; /* enum activity */
	unsigned names;    /* enum names */
	bool ordered;      /* enum ordering is ORDERED */
};

enum function_number {
`)
	for _, f := range functions {
		fmt.Fprintf(&b, "\t%s,\n", f.number())
	}
	fmt.Fprintf(&b, `	FUNCTION_COUNT
};

/* By enum function_number. */
extern const struct function functions[];
extern const unsigned function_count;

#endif
`)
	return b.Bytes()
}

// functionsSource is functions.c.
func functionsSource(functions []function) []byte {
	var b bytes.Buffer
	b.WriteString(madeFrom + `#include "functions.h"

#include "calls.h"

const unsigned function_count = FUNCTION_COUNT;

const struct function functions[] = {
`)
	for _, f := range functions {
		names, _ := f.names()
		fmt.Fprintf(&b, "\t[%s] = { \"%s\", %s, %s, %s, %s, %s, %t },\n", f.number(), f.name, f.bind,
			quoted(f.movement.out), quoted(f.movement.in), f.activity(), names, f.ordering() == "ORDERED")
	}
	b.WriteString("};\n")
	return b.Bytes()
}

func quoted(d direction) string {
	if d == noDirection {
		return "NULL"
	}
	return `"` + string(d) + `"`
}

// wrappersFile is the name of the file of a section's wrappers.
func wrappersFile(section string) string {
	return "wrappers_" + strings.NewReplacer(" ", "_", "-", "_").Replace(section) + ".c"
}

// wrappersSource is that file.
func wrappersSource(section string, functions []function) []byte {
	var b bytes.Buffer
	b.WriteString(madeFrom + `#include "calls.h"

#include "bytes.h"
#include "functions.h"
#include "wrappers.h"

`)
	for _, n := range arities(section, functions) {
		fmt.Fprintf(&b, "typedef int next_%d(%s);\n", n, list(slices.Repeat([]string{"intptr_t"}, n)))
	}
	for _, f := range functions {
		if f.section != section {
			continue
		}
		for _, w := range f.wrappers {
			writeWrapper(&b, f, w)
		}
	}
	return b.Bytes()
}

// writeWrapper writes the function that measures a call, and the two that stand in front of the library's, which call
// it.
func writeWrapper(b *bytes.Buffer, f function, w wrapper) {
	_, handle := object(f.parameters)
	if handle == "" {
		handle = "0"
	}
	var passed, given []string
	for _, p := range f.parameters {
		passed = append(passed, p.name)
		if p.role == "status" && f.movement.needsStatus() {
			given = append(given, "seen")
		} else {
			given = append(given, p.name)
		}
	}
	measure := "measure_" + w.symbol
	next := fmt.Sprintf("next_%d", len(f.parameters))

	b.WriteString("\n")
	fmt.Fprintf(b, "static MEASURES int %s(%s *next, const void *frame%s)\n{\n\tstruct call call;\n", measure, next,
		prefixed(declared(f.parameters)))
	if f.movement.needsStatus() {
		b.WriteString("\tunion own_status own;\n")
	}
	_, names := f.names()
	turn, after := f.afterOrdered()
	fmt.Fprintf(b, "\n\tif (!call_begins(&call, %s, %s, %s, %s, %s, frame))\n", f.number(), f.bind, handle,
		f.ordering(), names)
	fmt.Fprintf(b, "\t\treturn next(%s);\n", strings.Join(passed, ", "))
	if f.movement.needsStatus() {
		b.WriteString("\tintptr_t seen = status_or_own(status, &own);\n")
	}
	if starts := f.starts(); starts != "" {
		fmt.Fprintf(b, "\tif (counts_peers())\n\t\tcall_starts(%s);\n", starts)
	}
	fmt.Fprintf(b, "%s\tint rc = next(%s);\n\tcall_returns(&call, %s);\n%s", turn, strings.Join(given, ", "),
		f.activity(), after)
	if moved := movedExpression(f, w); moved == "" {
		b.WriteString("\tcall_counts(&call, 0, 0);\n")
	} else {
		fmt.Fprintf(b, "\tstruct moved moved = NOTHING_MOVED;\n\tif (rc == 0)\n\t\tmoved = %s;\n", moved)
		b.WriteString("\tcall_counts(&call, moved.out, moved.in);\n")
		b.WriteString("\tif (counts_sizes() && rc == 0)\n\t\tcall_size(&call, larger(moved));\n")
	}
	if to, conditions := f.sendsTo(w); to != "" {
		fmt.Fprintf(b, "\tif (counts_peers() && rc == 0 && %s)\n\t\tcall_sends(&call, %s, %s, moved.out);\n",
			strings.Join(conditions, " && "), f.bind, to)
	}
	if noted := f.noted(w); noted != "" {
		fmt.Fprintf(b, "\tif (counts_peers() && rc == 0)\n\t\t%s;\n", noted)
	}
	b.WriteString("\treturn rc;\n}\n")

	for _, symbol := range []string{w.symbol, "P" + w.symbol} {
		fmt.Fprintf(b, "\nEXPORT int %s(%s)\n{\n\tNEXT(%s, %s);\n\treturn %s(next, FRAME%s);\n}\n",
			symbol, list(declared(f.parameters)), next, symbol, measure, prefixed(passed))
	}
}

// noted is C for what is to be noted of a call's requests; "": it neither makes nor starts any.
func (f function) noted(w wrapper) string {
	switch {
	case f.starts() != "":
		return fmt.Sprintf("call_started(&call, %s)", f.starts())
	case f.requests() && f.persistent():
		return fmt.Sprintf("call_persists(&call, %s, request, %s, %s)", f.number(), f.whose(), f.sends(w))
	case f.requests():
		return fmt.Sprintf("call_requested(&call, request, %s)", f.whose())
	}
	return ""
}

// arities are the numbers of parameters that a section's functions have.
func arities(section string, functions []function) []int {
	var all []int
	for _, f := range functions {
		if f.section == section {
			all = append(all, len(f.parameters))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// list is a list of parameters in C.
func list(parameters []string) string {
	if len(parameters) == 0 {
		return "void"
	}
	return strings.Join(parameters, ", ")
}

func declared(parameters []parameter) []string {
	var all []string
	for _, p := range parameters {
		all = append(all, "intptr_t "+p.name)
	}
	return all
}

// prefixed is a list that goes on after a comma.
func prefixed(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return ", " + strings.Join(list, ", ")
}

// movedExpression is C for the bytes of a call that has succeeded, a struct moved; "": there are never any.
func movedExpression(f function, w wrapper) string {
	m := f.movement
	if m.collective != "" {
		var arguments []string
		for _, role := range m.collectiveFrom {
			arguments = append(arguments, argument(f, w, role))
		}
		return fmt.Sprintf("bytes_%s(&call, %s)", m.collective, strings.Join(arguments, ", "))
	}
	var fields []string
	if m.out != noDirection {
		fields = append(fields, ".out = "+bytesExpression(f, w, m.outFrom))
	}
	if m.in != noDirection {
		fields = append(fields, ".in = "+bytesExpression(f, w, m.inFrom))
	}
	if len(fields) == 0 {
		return ""
	}
	return "(struct moved){ " + strings.Join(fields, ", ") + " }"
}

// bytesExpression is C for one buffer's bytes.
func bytesExpression(f function, w wrapper, from []string) string {
	if from[0] == "status" {
		return "bytes_in_status(seen)"
	}
	conditions := moves(f, w, from)
	count, datatype := "1", ""
	for _, role := range from {
		a := argument(f, w, role)
		switch roles[role] {
		case kindCount:
			count = a
		case kindType:
			datatype = a
		}
	}
	expression := fmt.Sprintf("bytes_of(%s, %s)", count, datatype)
	if len(conditions) == 0 {
		return expression
	}
	return strings.Join(conditions, " && ") + " ? " + expression + " : 0"
}

// moves is C for when a buffer's bytes are moved at all.
func moves(f function, w wrapper, from []string) (conditions []string) {
	for _, role := range from {
		switch roles[role] {
		case kindPeer:
			conditions = append(conditions, "is_peer("+argument(f, w, role)+")")
		case kindOp:
			conditions = append(conditions, "reads_origin("+argument(f, w, role)+")")
		}
	}
	return conditions
}

// sendsTo is C for the rank that a call sends something to, and for when it does; "": none, or all.
func (f function) sendsTo(w wrapper) (to string, conditions []string) {
	for _, role := range f.movement.outFrom {
		if roles[role] == kindPeer {
			return argument(f, w, role), moves(f, w, f.movement.outFrom)
		}
	}
	return "", nil
}

// argument is C for what the program has given, from the register that it came in: of an int only the lower half
// counts.
func argument(f function, w wrapper, role string) string {
	for _, p := range f.parameters {
		if p.role != role {
			continue
		}
		switch {
		case p.kind == kindCounts && w.wide:
			return "wide_counts(" + p.name + ")"
		case p.kind == kindCounts:
			return "int_counts(" + p.name + ")"
		case p.kind == kindPeer, p.kind == kindCount && !w.wide:
			return "(int)" + p.name
		default:
			return p.name
		}
	}
	return ""
}
