package main

import (
	"fmt"
	"strings"
)

// named is whom a call names, for who looks while it is under way (enum names in calls.h).
type named string

const (
	namesNobody named = "NAMES_NOBODY"
	namesPeer   named = "NAMES_PEER"
	namesRoot   named = "NAMES_ROOT"
	// namesRequests are those of an operation that waits for, or asks for the end of, what others have begun.
	namesRequests named = "NAMES_REQUESTS"
)

// names returns it, and C for the rank and the tag. Of a call that sends and receives it is whom it receives from: what
// it sends may be gone long before that has come.
func (f function) names() (named, string) {
	tags := map[string]string{"source": "recvtag", "dest": "sendtag"}
	for _, role := range []string{"source", "dest", "target", "root"} {
		if present([]string{role}, f.parameters) != nil {
			continue
		}
		if role == "root" {
			return namesRoot, fmt.Sprintf("call_names(%s, 0)", role)
		}
		for _, tag := range []string{tags[role], "tag"} {
			if present([]string{tag}, f.parameters) == nil {
				return namesPeer, fmt.Sprintf("call_names(%s, %s)", role, tag)
			}
		}
		return namesPeer, fmt.Sprintf("call_names(%s, NO_TAG)", role)
	}
	switch {
	case f.section != completion:
	case present([]string{"requests"}, f.parameters) == nil:
		return namesRequests, "call_requests(requests, number)"
	case present([]string{"request"}, f.parameters) == nil:
		return namesRequests, "call_requests(request, 1)"
	}
	return namesNobody, "0"
}

const completion = "completion"

// requests says whether a call makes a request, which is then in its last argument. All of them are noted, also those
// that name nobody: a handle that is used again must not be taken for what it was.
func (f function) requests() bool {
	last := len(f.parameters) - 1
	return last >= 0 && f.parameters[last].role == "request" && f.section != completion && f.starts() == ""
}

// whose is C for whom that request names, or for a collective's number. One that sends and receives is both's: none is
// told. Of a persistent collective it isn't the number of its _init that others have to come to.
func (f function) whose() string {
	switch kind, names := f.names(); {
	case f.ordering() == "ORDERED" && !f.persistent():
		return "call_number(&call)"
	case kind != namesPeer:
		return "0"
	case present([]string{"source", "dest"}, f.parameters) == nil:
		return "call_names(INT32_MIN, NO_TAG)"
	default:
		return names
	}
}

// persistent says whether that request is one that MPI_Start starts.
func (f function) persistent() bool { return strings.HasSuffix(f.name, "_init") }

// sends is C for the bytes that each start of a persistent request sends.
func (f function) sends(w wrapper) string {
	if present([]string{"dest", "type"}, f.parameters) != nil {
		return "NO_MESSAGE"
	}
	count := argument(f, w, "count")
	if count == "" {
		count = "(int)partitions * widecount"
	}
	return fmt.Sprintf("is_peer(%s) ? bytes_of(%s, type) : NO_MESSAGE", argument(f, w, "dest"), count)
}

// starts is C for the persistent requests that a call starts, and how many there are; "": it starts none.
func (f function) starts() string {
	switch f.name {
	case "MPI_Start":
		return "request, 1"
	case "MPI_Startall":
		return "requests, number"
	}
	return ""
}
