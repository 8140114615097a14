package required_test

import (
	"fmt"
	"testing"
	"time"

	"docent/internal/required"
)

type Desk struct{ Log fmt.Stringer }

type Deps struct {
	Desk
	Now  func() time.Time
	Most int
	Wait time.Duration // may be missing
}

func TestARequiredFieldThatIsMissingIsNamed(t *testing.T) {
	whole := Deps{Desk: Desk{Log: time.Second}, Now: time.Now, Most: 1}
	for want, spoil := range map[string]func(*Deps){
		"":                           func(*Deps) {},
		"desk: Deps.Log is not set":  func(d *Deps) { d.Log = nil },
		"desk: Deps.Now is not set":  func(d *Deps) { d.Now = nil },
		"desk: Deps.Most is not set": func(d *Deps) { d.Most = -1 },
	} {
		d := whole
		spoil(&d)
		got := ""
		if err := required.Fields("desk", d, "Log", "Now", "Most"); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
