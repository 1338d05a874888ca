package otlp

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// pair is one of a list as OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES have them.
type pair struct{ key, value string }

// parsePairs reads key=value,key=value, with values encoded as in URLs and spaces around both ignored. Errors name
// the place, not the value, which may be a password.
func parsePairs(text string) ([]pair, error) {
	var pairs []pair
	for i, member := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(member, "=")
		key = strings.TrimSpace(key)
		switch {
		case strings.TrimSpace(member) == "":
			continue // a comma at the end
		case !ok:
			return nil, fmt.Errorf("entry %d has no =", i+1)
		case key == "":
			return nil, fmt.Errorf("entry %d has nothing before =", i+1)
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("entry %d, %q: a %% must be followed by two hexadecimal digits; %%25 is a %%",
				i+1, key)
		}
		pairs = append(pairs, pair{key, value})
	}
	return pairs, nil
}

// ownHeaders are those that the protocols set themselves, besides grpc-….
var ownHeaders = []string{
	"content-type", "content-encoding", "content-length", "transfer-encoding", "host", "connection", "te",
}

// addHeader adds a header that the protocol can carry; a later one replaces an earlier one of the same name.
func addHeader(to map[string]string, key, value, protocol string) error {
	name := strings.ToLower(key)
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("%q is no name of a header: letters, digits and -", key)
	case !httpguts.ValidHeaderFieldValue(value):
		return fmt.Errorf("the value of %q has a control character", key)
	case strings.HasPrefix(name, "grpc-"), slices.Contains(ownHeaders, name):
		return fmt.Errorf("the header %q is the protocol's own", key)
	case protocol == ProtocolGRPC && !strings.HasSuffix(name, "-bin") && strings.ContainsFunc(value, unprintable):
		return fmt.Errorf("the value of %q has characters other than printable ASCII, which gRPC can't carry", key)
	}
	to[name] = value
	return nil
}
