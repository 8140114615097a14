package api_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"docent/api"
)

func TestGuardMakesAnErrorOfAPanic(t *testing.T) {
	err := api.Guard(func() error { panic("odd") })
	var panicked *api.PanicError
	if !errors.As(err, &panicked) || !strings.Contains(err.Error(), "odd") ||
		!strings.Contains(err.Error(), "guard_test.go") {
		t.Errorf("a panic became %v", err)
	}
	if err := api.Guard(func() error { return io.EOF }); err != io.EOF {
		t.Errorf("an error became %v", err)
	}
	if err := api.Guard(func() error { return nil }); err != nil {
		t.Errorf("nothing became %v", err)
	}
}
