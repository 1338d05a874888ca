package main

import (
	"regexp"
	"slices"
)

// activity is what a call does, as far as it says who waits for whom (enum activity in source.h).
type activity string

const (
	sending      activity = "SENDING"
	waiting      activity = "WAITING"
	inCollective activity = "IN_COLLECTIVE"
	inFile       activity = "IN_FILE"
	polling      activity = "POLLING"
)

// polls are the functions that ask whether something has happened, and return at once.
var polls = regexp.MustCompile(`^MPI_(Test.*|Request_get_status.*|Im?probe|Win_test|Parrived)$`)

// receiving are the point-to-point functions that return when something has come, or has gone.
var receiving = regexp.MustCompile(`^MPI_(M?[Rr]ecv|M?[Pp]robe|Sendrecv.*|[A-Z][a-z]+_(detach|flush)(_buffer)?)$`)

// makingWindows are the one-sided functions in which all take part.
var makingWindows = regexp.MustCompile(`^MPI_Win_(create|allocate|free).*$`)

// synchronising are the one-sided functions that wait for others, or for what was put and got.
var synchronising = regexp.MustCompile(`^MPI_Win_`)

func (f function) activity() activity {
	if polls.MatchString(f.name) {
		return polling
	}
	hasRequest := slices.ContainsFunc(f.parameters, func(p parameter) bool { return p.role == "request" })
	switch f.section {
	case completion:
		return waiting
	case "file":
		return inFile
	case "collective", "neighbourhood", "communicator":
		if hasRequest {
			return sending
		}
		return inCollective
	case "one-sided":
		switch {
		case makingWindows.MatchString(f.name):
			return inCollective
		case synchronising.MatchString(f.name):
			return waiting
		}
	default:
		if receiving.MatchString(f.name) {
			return waiting
		}
	}
	return sending
}
