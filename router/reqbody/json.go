package reqbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects of a body may be nested.
const maxDepth = 100

// A value is one JSON value as it stands in a body that was found valid.
type value = json.RawMessage

// parse checks that raw is one JSON value in UTF-8 that is not nested too deep.
func parse(raw []byte) (value, error) {
	trimmed := bytes.Trim(raw, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, &SyntaxError{"the body is empty: send a JSON object"}
	}
	if !utf8.Valid(raw) {
		return nil, &SyntaxError{"the body is not valid UTF-8"}
	}
	if bytes.HasPrefix(raw, []byte("\ufeff")) {
		return nil, &SyntaxError{"the body begins with a byte order mark: leave it out"}
	}
	if depth(raw) > maxDepth {
		return nil, &SyntaxError{fmt.Sprintf("the body is nested deeper than %d arrays and objects", maxDepth)}
	}
	var whole value
	if err := json.Unmarshal(raw, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &SyntaxError{fmt.Sprintf("the body is not valid JSON: %s at byte %d", syntax.Error(), syntax.Offset)}
		}
		return nil, &SyntaxError{"the body is not valid JSON"}
	}
	return trimmed, nil
}

// depth is how deep arrays and objects are nested. It holds for JSON; for anything else it is some number.
func depth(raw []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// The types of values.
const (
	none    = byte(0) // there is no value
	object  = '{'
	array   = '['
	text    = '"'
	number  = '0'
	boolean = 't'
	null    = 'n'
)

// is is the type of a value.
func is(v value) byte {
	if len(v) == 0 {
		return none
	}
	switch c := v[0]; c {
	case object, array, text, null:
		return c
	case 't', 'f':
		return boolean
	}
	return number
}

// kind is the type of a value in words, for people.
func kind(v value) string {
	switch is(v) {
	case object:
		return "an object"
	case array:
		return "an array"
	case text:
		return "a string"
	case boolean:
		return "a boolean"
	case null:
		return "null"
	case number:
		return "a number"
	}
	return "nothing"
}

// members are those of an object; none for another value.
func members(v value) (m map[string]value) {
	if is(v) == object {
		_ = json.Unmarshal(v, &m) // the body was found valid
	}
	return m
}

// elements are those of an array; none for another value.
func elements(v value) (list []value) {
	if is(v) == array {
		_ = json.Unmarshal(v, &list) // the body was found valid
	}
	return list
}

// word is the text of a string; empty for another value.
func word(v value) (s string) {
	if is(v) == text {
		_ = json.Unmarshal(v, &s) // the body was found valid
	}
	return s
}
