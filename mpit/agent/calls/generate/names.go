package main

import "fmt"

// named is whom a call names, for who looks while it is under way (enum names in calls.h).
type named string

const (
	namesNobody named = "NAMES_NOBODY"
	namesPeer   named = "NAMES_PEER"
	namesRoot   named = "NAMES_ROOT"
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
	return namesNobody, "0"
}
