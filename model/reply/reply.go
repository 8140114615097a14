// Package reply reads what a model replied where one object of JSON was asked for, and fences what it is asked about.
package reply

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/internal/brief"
)

// ErrForm says that the model answered with something else than was asked for.
var ErrForm = errors.New("the reply is not of the form that was asked for")

const longest = 8 << 10 // bytes

// Fence names an element around quoted material, which that cannot close: it would have to hold its own digest.
func Fence(kind, quoted string) string {
	sum := sha256.Sum256([]byte(quoted))
	return fmt.Sprintf("%s-%x", kind, sum[:6])
}

// Object reads the object that was asked for, as it stands or in a fence of code, and nothing beside it.
func Object(text string, into any) error {
	text = strings.TrimSpace(text)
	if len(text) > longest {
		return fmt.Errorf("%w: it is too long", ErrForm)
	}
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		inner, ok = strings.CutSuffix(strings.TrimSpace(strings.TrimPrefix(inner, "json")), "```")
		if ok {
			text = inner
		}
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: it is not the object", ErrForm)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the object", ErrForm)
	}
	return nil
}

// Line is a text of a reply in one line.
func Line(s string, most int) (string, error) {
	s = brief.Line(s)
	switch {
	case s == "":
		return "", errors.New("is empty")
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return "", errors.New("holds control characters")
	case utf8.RuneCountInString(s) > most:
		return "", fmt.Errorf("has more than %d characters", most)
	case !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		return "", errors.New("has no word")
	}
	return s, nil
}

// Lines are texts of a reply, each as a line, and once whatever its case.
func Lines(list []string, most int) (out []string, err error) {
	seen := map[string]bool{}
	for _, s := range list {
		if s, err = Line(s, most); err != nil {
			return nil, err
		}
		if folded := strings.ToLower(s); !seen[folded] {
			seen[folded] = true
			out = append(out, s)
		}
	}
	return out, nil
}
