package otlp

import (
	"fmt"
	"slices"
	"strings"
)

// The variables of the OTLP exporters have two forms; the second is of metrics alone and goes before the first.
const (
	general    = "OTEL_EXPORTER_OTLP_"
	ofMetrics  = "OTEL_EXPORTER_OTLP_METRICS_"
	exporters  = "OTEL_METRICS_EXPORTER"
	disabled   = "OTEL_SDK_DISABLED"
	service    = "OTEL_SERVICE_NAME"
	attributes = "OTEL_RESOURCE_ATTRIBUTES"
)

// Asked says whether the environment asks for OTLP: OTEL_METRICS_EXPORTER names otlp, or there is an endpoint and
// OTEL_METRICS_EXPORTER is not set. OTEL_SDK_DISABLED=true and OTEL_METRICS_EXPORTER=none say no.
func Asked(getenv func(name string) string) bool {
	e := environ{getenv, ""}
	if strings.EqualFold(e.get(disabled).text, "true") {
		return false
	}
	named := e.get(exporters).text
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

// wrong is an error that names the place, what stands there and the remedy.
func (v setting) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %q %s", v.name, v.text, fmt.Sprintf(format, args...))
}

// oneOf returns the word that stands there, which must be one of these, or otherwise where there is none.
func (v setting) oneOf(what, otherwise string, words ...string) (string, error) {
	last := len(words) - 1
	switch {
	case v.text == "":
		return otherwise, nil
	case !slices.Contains(words, v.text):
		return "", v.wrong("is no %s: write %s or %s", what, strings.Join(words[:last], ", "), words[last])
	}
	return v.text, nil
}
