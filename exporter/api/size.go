package api

import (
	"reflect"
	"strings"
)

// sizeOf returns roughly how many bytes v takes as indented JSON. It stops counting beyond limit: a rank may refer to
// one long name from very many places, and each is a copy in the answer.
func sizeOf(v any, limit int) int {
	left := limit
	count(reflect.ValueOf(v), &left)
	return limit - left
}

const (
	nameBytes  = 4  // besides a field's name: quotes, a colon, a blank
	valueBytes = 16 // besides a value: quotes, a comma, a new line, and the blanks before it
)

func count(v reflect.Value, left *int) {
	if *left < 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len() + valueBytes
	case reflect.Pointer:
		if !v.IsNil() {
			count(v.Elem(), left)
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && *left >= 0; i++ {
			count(v.Index(i), left)
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next() && *left >= 0; {
			count(entries.Key(), left)
			count(entries.Value(), left)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && (!v.Field(i).IsZero() || !strings.Contains(f.Tag.Get("json"), ",omitempty")) {
				*left -= len(f.Name) + nameBytes
				count(v.Field(i), left)
			}
		}
	default:
		*left -= valueBytes
	}
}
