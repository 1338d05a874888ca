package main

import (
	"fmt"
	"regexp"
	"slices"
)

// making is MPI's function that makes communicators, as far as their identity goes: the word of order.h, and the
// parameter that belongs to it.
type making struct {
	word, argument string
}

// makings are the functions whose communicators have an identity. Those of others may have processes of several
// worlds.
var makings = map[string]making{
	"MPI_Comm_dup":                     {"MAKES_ONE", "0"},
	"MPI_Comm_dup_with_info":           {"MAKES_ONE", "0"},
	"MPI_Comm_split":                   {"MAKES_COLOURS", "number"},
	"MPI_Comm_split_type":              {"MAKES_PARTS", "0"},
	"MPI_Comm_create":                  {"MAKES_PARTS", "0"},
	"MPI_Comm_create_group":            {"MAKES_OF_GROUP", "tag"},
	"MPI_Comm_create_from_group":       {"MAKES_FROM_GROUP", "string"},
	"MPI_Cart_create":                  {"MAKES_ONE", "0"},
	"MPI_Cart_sub":                     {"MAKES_PARTS", "0"},
	"MPI_Graph_create":                 {"MAKES_ONE", "0"},
	"MPI_Dist_graph_create":            {"MAKES_ONE", "0"},
	"MPI_Dist_graph_create_adjacent":   {"MAKES_ONE", "0"},
	"MPI_Intercomm_create":             {"MAKES_OF_GROUPS", "tag"},
	"MPI_Intercomm_create_from_groups": {"MAKES_FROM_GROUPS", "string"},
	"MPI_Intercomm_merge":              {"MAKES_ONE", "0"},
}

// onOne are the functions outside the families of collectives that all members of a communicator call in one order.
var onOne = regexp.MustCompile(`^MPI_(Win_(create|allocate).*|File_open)$`)

// ordering is what a function is to the communicator that it names (enum ordering in calls.h).
func (f function) ordering() string {
	_, makes := makings[f.name]
	switch {
	case f.bind == bindComm && f.name != "MPI_Comm_create_group" &&
		(slices.Contains([]string{"collective", "neighbourhood", "communicator"}, f.section) ||
			onOne.MatchString(f.name)):
		return "ORDERED"
	case makes:
		return "MAKES"
	case f.persistent() || f.starts() != "":
		return "NOTED"
	}
	return "UNORDERED"
}

// afterOrdered is C for what comes after a collective or a constructor; turn is what comes before it.
func (f function) afterOrdered() (turn, after string) {
	if f.ordering() == "UNORDERED" || f.ordering() == "NOTED" {
		return "", ""
	}
	// A file that can't be opened can't be opened by any of them.
	if f.name != "MPI_File_open" {
		after = fmt.Sprintf("\tif (UNLIKELY(rc != 0))\n\t\torder_failed(&call, %s);\n", f.ordering())
	}
	m, makes := makings[f.name]
	if !makes {
		return "", after
	}
	given := "0"
	if m.word == "MAKES_OF_GROUPS" {
		turn, given = "\tuint64_t turn = order_turn();\n", "turn"
	}
	return turn, after + fmt.Sprintf("\telse\n\t\torder_made(&call, %s, %s, newcomm, %s);\n", m.word, m.argument, given)
}
