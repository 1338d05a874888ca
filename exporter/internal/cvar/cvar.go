// Package cvar reads and writes the values of control variables as text.
package cvar

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxItems is how many items of an enumeration an error lists.
	maxItems = 20
	// maxItemName is how long the name of an item may be to stand for its number, in bytes: an array may have very many
	// of them.
	maxItemName = 128
	// maxText bounds the text of an array, in bytes: as long as a text may be itself.
	maxText = 64 << 10
)

// Parse reads a value of a control variable as a person writes it: numbers, names of the enumeration's items, true
// and false, with commas between elements; text as it stands. present is what the variable has now, which says how
// many elements there are.
func Parse(v *mpit.ControlVariable, present mpit.CvarValue, text string) (mpit.CvarValue, error) {
	if present.IsText {
		if strings.ContainsRune(text, 0) {
			return mpit.CvarValue{}, errors.New("a text with a zero byte in it, which would end it")
		}
		return mpit.CvarValue{Text: text, IsText: true}, nil
	}
	words := []string{text}
	// Of a single element the whole text may be an item's name, commas and all.
	if len(present.Values) != 1 {
		words = strings.Split(text, ",")
		if strings.TrimSpace(text) == "" {
			words = nil
		}
	}
	if len(words) != len(present.Values) {
		return mpit.CvarValue{}, fmt.Errorf("%d values where the variable has %d elements", len(words), len(present.Values))
	}
	value := mpit.CvarValue{Values: make([]uint64, len(words))}
	for i, word := range words {
		var err error
		if value.Values[i], err = parseElement(v, strings.TrimSpace(word)); err != nil {
			return mpit.CvarValue{}, err
		}
	}
	return value, nil
}

// parseElement reads one element.
func parseElement(v *mpit.ControlVariable, text string) (uint64, error) {
	if v.Enum != nil {
		return parseItem(v.Enum, text)
	}
	if v.Datatype == mpit.DatatypeBool {
		switch strings.ToLower(text) {
		case "1", "true":
			return 1, nil
		case "0", "false":
			return 0, nil
		}
		return 0, fmt.Errorf("%q is neither true nor false (nor 1 nor 0)", text)
	}
	bits, word, err := 64, uint64(0), error(nil)
	switch v.Datatype {
	case mpit.DatatypeFloat, mpit.DatatypeInt, mpit.DatatypeInt32, mpit.DatatypeUnsigned, mpit.DatatypeUint32:
		bits = 32
	}
	switch mapping.NumberOf(v.Datatype) {
	case mapping.Floating: // a float comes back as it was rounded
		var x float64
		if x, err = strconv.ParseFloat(text, bits); err == nil && !mapping.Finite(x) {
			return 0, fmt.Errorf("%q is not a finite number", text)
		}
		word = math.Float64bits(x)
	case mapping.Signed:
		var i int64
		i, err = strconv.ParseInt(text, 10, bits)
		word = uint64(i)
	case mapping.Unsigned:
		word, err = strconv.ParseUint(text, 10, bits)
	default:
		return 0, fmt.Errorf("values of datatype %s can't be written", v.Datatype)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of datatype %s: %w", text, v.Datatype, errors.Unwrap(err))
	}
	return word, nil
}

// parseItem reads an item of an enumeration: its name or its number, and no other number.
func parseItem(e *mpit.Enum, text string) (uint64, error) {
	for _, item := range e.Items {
		if item.Name == text {
			return uint64(item.Value), nil
		}
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		for _, item := range e.Items {
			if item.Value == number {
				return uint64(number), nil
			}
		}
	}
	var items []string
	for _, item := range e.Items[:min(len(e.Items), maxItems)] {
		items = append(items, fmt.Sprintf("%s (%d)", clean.Cut(item.Name, maxItemName), item.Value))
	}
	if more := len(e.Items) - len(items); more > 0 {
		items = append(items, fmt.Sprintf("and %d more", more))
	}
	return 0, fmt.Errorf("%q is no item of the enumeration %q, which has %s",
		text, e.Name, cmp.Or(strings.Join(items, ", "), "none"))
}

// Format is a value as text, in the way in which Parse reads it. An array that would be longer than maxText is cut,
// with … at its end.
func Format(d mpit.Datatype, enum *mpit.Enum, v mpit.CvarValue) string {
	if v.IsText {
		return v.Text
	}
	names := itemNames(enum, v.Values)
	var text strings.Builder
	for i, w := range v.Values {
		if i > 0 {
			text.WriteByte(',')
		}
		name, named := names[int64(w)]
		switch {
		case text.Len() > maxText:
			text.WriteString("…")
			return text.String()
		case named:
			text.WriteString(name)
		case d.Floating():
			text.WriteString(strconv.FormatFloat(d.Float64(w), 'g', -1, 64))
		case d.Signed():
			text.WriteString(strconv.FormatInt(int64(w), 10))
		default:
			text.WriteString(strconv.FormatUint(w, 10))
		}
	}
	return text.String()
}

// Text is a control variable's present value as text.
func Text(v *mpit.ControlVariable) string {
	value := mpit.CvarValue{Values: v.Values, Text: v.Text, IsText: v.Datatype == mpit.DatatypeChar}
	return Format(v.Datatype, v.Enum, value)
}

// itemNames are the names of an enumeration's items that stand for one of these elements.
func itemNames(enum *mpit.Enum, elements []uint64) map[int64]string {
	names := map[int64]string{}
	if enum == nil || len(elements) == 0 {
		return names
	}
	wanted := make(map[int64]bool, len(elements))
	for _, w := range elements {
		wanted[int64(w)] = true
	}
	for _, item := range enum.Items {
		if _, twice := names[item.Value]; !twice && wanted[item.Value] && len(item.Name) <= maxItemName {
			names[item.Value] = item.Name
		}
	}
	return names
}

// Same says whether two values are the same to the last bit.
func Same(a, b mpit.CvarValue) bool {
	return a.IsText == b.IsText && a.Text == b.Text && slices.Equal(a.Values, b.Values)
}
