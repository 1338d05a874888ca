package otlp

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The variables of the OTLP exporters have two forms; the second is of metrics alone and goes before the first.
const (
	general   = "OTEL_EXPORTER_OTLP_"
	ofMetrics = "OTEL_EXPORTER_OTLP_METRICS_"
)

// Asked says whether the environment asks for OTLP: OTEL_METRICS_EXPORTER names otlp, or there is an endpoint and
// OTEL_METRICS_EXPORTER is not set. OTEL_SDK_DISABLED=true and OTEL_METRICS_EXPORTER=none say no.
func Asked(getenv func(name string) string) bool {
	e := environ{getenv, ""}
	if strings.EqualFold(e.get("OTEL_SDK_DISABLED").text, "true") {
		return false
	}
	named := e.get("OTEL_METRICS_EXPORTER").text
	if named == "" {
		return e.pick("", "", "ENDPOINT").text != ""
	}
	return slices.ContainsFunc(strings.Split(named, ","),
		func(name string) bool { return strings.TrimSpace(name) == "otlp" })
}

// environ looks up settings.
type environ struct {
	getenv func(name string) string
	prefix string // of fields
}

// setting is a word with the name of where it stands.
type setting struct {
	name, text string
	field      bool // of Config, not of the environment
	all        bool // in the form that is not of metrics alone
}

// get reads a variable that has one form. An empty one is none.
func (e environ) get(name string) setting {
	return setting{name: name, text: strings.TrimSpace(e.getenv(name))}
}

// pick returns the field's word if there is one, else the variable's, of metrics before the general.
func (e environ) pick(word, field, key string) setting {
	if word != "" {
		return setting{name: e.prefix + field, text: word, field: true}
	}
	if v := e.get(ofMetrics + key); v.text != "" {
		return v
	}
	v := e.get(general + key)
	v.all = true
	return v
}

// oneOf returns the word that stands there, which must be one of these in any case; the first where there is none.
func (v setting) oneOf(words ...string) (string, error) {
	if v.text == "" {
		return words[0], nil
	}
	i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, v.text) })
	if i < 0 {
		return "", fmt.Errorf("%s: %q is not supported: write %s", v.name, v.text, strings.Join(words, " or "))
	}
	return words[i], nil
}

// milliseconds returns the time that stands there; the other where there is none.
func (v setting) milliseconds(otherwise time.Duration) (time.Duration, error) {
	if v.text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(v.text + "ms")
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: %q is no number of milliseconds above 0: write 10000 for ten seconds", v.name, v.text)
	}
	return d, nil
}

// pair is one of a list as OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES have them.
type pair struct{ key, value string }

// pairs reads key=value,key=value, with both encoded as in URLs and spaces around them ignored. Errors name the place,
// not the value, which may be a password.
func (v setting) pairs() (pairs []pair, err error) {
	for i, member := range strings.Split(v.text, ",") {
		if strings.TrimSpace(member) == "" {
			continue // a comma at the end
		}
		key, value, ok := strings.Cut(member, "=")
		p := pair{strings.TrimSpace(key), strings.TrimSpace(value)}
		if !ok || p.key == "" {
			return nil, fmt.Errorf("%s: entry %d has no =, or nothing before it; write it as key=value,key=value with %%2C "+
				"for a comma within a value", v.name, i+1)
		}
		for _, text := range []*string{&p.value, &p.key} {
			if *text, err = url.PathUnescape(*text); err != nil {
				return nil, fmt.Errorf("%s: entry %d, %q: a %% must be followed by two hexadecimal digits; %%25 is a %%",
					v.name, i+1, strings.TrimSpace(key))
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// What both protocols carry: gRPC takes no more.
var (
	headerName  = regexp.MustCompile(`^[0-9A-Za-z_.-]+$`)
	headerValue = regexp.MustCompile(`^[ -~]*$`)
)

// ownHeaders are the protocol's: with another value each message would fail.
var ownHeaders = []string{"content-type", "content-encoding", "content-length", "transfer-encoding", "host", "te"}

// checkHeader says what keeps a pair from being a header.
func (p pair) checkHeader() error {
	switch {
	case !headerName.MatchString(p.key):
		return fmt.Errorf("%q is no name of a header: write letters, digits, ., - and _", p.key)
	case slices.Contains(ownHeaders, strings.ToLower(p.key)), strings.HasPrefix(strings.ToLower(p.key), "grpc-"):
		return fmt.Errorf("the header %q is the protocol's own: leave it out", p.key)
	case !headerValue.MatchString(p.value):
		return fmt.Errorf("the value of %q has characters other than printable ASCII", p.key)
	}
	return nil
}
