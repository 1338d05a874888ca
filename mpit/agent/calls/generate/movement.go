package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A direction says what is known of bytes: docs/calls-reference.md.
type direction string

const (
	noDirection direction = ""
	sent        direction = "sent"
	written     direction = "written"
	received    direction = "received"
	posted      direction = "posted"
	read        direction = "read"
)

func (d direction) out() bool { return d == sent || d == written }
func (d direction) in() bool  { return d == received || d == posted || d == read }

// A movement is how a function's bytes are computed: the directions that it has, and an expression in C for each, or
// for a collective operation one for both, a struct moved.
type movement struct {
	out, in direction
	// Roles of the parameters that the bytes of each direction are computed from.
	outFrom, inFrom []string
	// The function of bytes.c, and the roles of its parameters.
	collective     string
	collectiveFrom []string
}

// What the collective operations' functions of bytes.c take, in order. All of them have bytes in both directions.
var collectives = map[string][]string{
	"bcast":                {"count", "type", "root"},
	"gather":               {"sendbuf", "sendcount", "sendtype", "recvcount", "recvtype", "root"},
	"gatherv":              {"sendbuf", "sendcount", "sendtype", "recvcounts", "recvtype", "root"},
	"scatter":              {"sendcount", "sendtype", "recvbuf", "recvcount", "recvtype", "root"},
	"scatterv":             {"sendcounts", "sendtype", "recvbuf", "recvcount", "recvtype", "root"},
	"allgather":            {"sendbuf", "sendcount", "sendtype", "recvcount", "recvtype"},
	"allgatherv":           {"sendbuf", "sendcount", "sendtype", "recvcounts", "recvtype"},
	"alltoall":             {"sendbuf", "sendcount", "sendtype", "recvcount", "recvtype"},
	"alltoallv":            {"sendbuf", "sendcounts", "sendtype", "recvcounts", "recvtype"},
	"alltoallw":            {"sendbuf", "sendcounts", "sendtypes", "recvcounts", "recvtypes"},
	"reduce":               {"count", "type", "root"},
	"allreduce":            {"count", "type"},
	"reduce_scatter":       {"recvcounts", "type"},
	"reduce_scatter_block": {"recvcount", "type"},
	"scan":                 {"count", "type"},
	"neighbor_allgather":   {"sendcount", "sendtype", "recvcount", "recvtype"},
	"neighbor_allgatherv":  {"sendcount", "sendtype", "recvcounts", "recvtype"},
	"neighbor_alltoall":    {"sendcount", "sendtype", "recvcount", "recvtype"},
	"neighbor_alltoallv":   {"sendcounts", "sendtype", "recvcounts", "recvtype"},
	"neighbor_alltoallw":   {"sendcounts", "sendtypes", "recvcounts", "recvtypes"},
}

var movementTerm = regexp.MustCompile(`^([a-z]+)\(([a-z ]*)\)\s*`)

// parseMovement reads the table's third column for a function with these parameters.
func parseMovement(text string, parameters []parameter) (movement, error) {
	var m movement
	if text == "" {
		return m, nil
	}
	if from, known := collectives[text]; known {
		m.out, m.in = sent, received
		m.collective, m.collectiveFrom = text, from
		if b, _ := object(parameters); b != bindComm {
			return m, fmt.Errorf("%s is of a communicator, and there is none", text)
		}
		return m, present(from, parameters)
	}
	for text != "" {
		term := movementTerm.FindStringSubmatch(text)
		if term == nil {
			return m, fmt.Errorf("bytes %q: neither a collective operation of movement.go nor direction(parameters)",
				text)
		}
		text = text[len(term[0]):]
		d, from := direction(term[1]), strings.Fields(term[2])
		if err := valid(from, parameters); err != nil {
			return m, fmt.Errorf("%s: %w", d, err)
		}
		switch {
		case d.out() && m.out == noDirection:
			m.out, m.outFrom = d, from
		case d.in() && m.in == noDirection:
			m.in, m.inFrom = d, from
		default:
			return m, fmt.Errorf("%q is no direction, or one of its side too many", d)
		}
	}
	if slices.Contains(m.outFrom, "status") {
		return m, errors.New("a status tells what has come, not what has gone")
	}
	return m, nil
}

func present(wanted []string, parameters []parameter) error {
	for _, role := range wanted {
		if !slices.ContainsFunc(parameters, func(p parameter) bool { return p.role == role }) {
			return fmt.Errorf("the function has no %s", role)
		}
	}
	return nil
}

// valid is whether bytes can be computed from these: a status, or [peer] [op] [count] type.
func valid(from []string, parameters []parameter) error {
	if err := present(from, parameters); err != nil {
		return err
	}
	var kinds []string
	for _, role := range from {
		kinds = append(kinds, string(roles[role]))
	}
	if form := strings.Join(kinds, " "); !validForm.MatchString(form) {
		return fmt.Errorf("bytes of %q can't be computed: status, or [peer] [op] [count] type",
			strings.Join(from, " "))
	}
	return nil
}

var validForm = regexp.MustCompile(`^(status_at|(peer )?(op )?(count )?datatype)$`)

// needsStatus is whether the call must have a status though the program wants none.
func (m movement) needsStatus() bool { return slices.Contains(m.inFrom, "status") }
