package mpit

import "github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"

// What tests outside the package need of its inside: package mpittest, which makes their input, imports this one.

func DecodeHello(f wire.Frame) (Hello, error) { return decodeHello(f) }

// Answers takes the frames of answers to SAMPLE.
type Answers struct{ catalogue catalogue }

func (a *Answers) Frame(f wire.Frame) (Sample, bool, error) { return a.catalogue.frame(f) }

func DecodeControlVariables(payload []byte, first int) (list []ControlVariable, next, total int, err error) {
	list, p, err := decodeControlVariables(payload, first, nil)
	return list, p.next, p.total, err
}

func DecodeCategories(payload []byte, first int) (list []Category, next, total int, err error) {
	list, p, err := decodeCategories(payload, first)
	return list, p.next, p.total, err
}
