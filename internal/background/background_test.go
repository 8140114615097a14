package background_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"docent/internal/background"
)

func TestGuardMakesAnErrorOfAPanic(t *testing.T) {
	before := background.Panics()
	err := background.Guard(func() error { panic("odd") })
	var panicked *background.PanicError
	if !errors.As(err, &panicked) || !strings.Contains(err.Error(), "odd") ||
		!strings.Contains(err.Error(), "background_test.go") {
		t.Errorf("a panic became %v", err)
	}
	if background.Panics() == before {
		t.Error("the panic was not counted")
	}
	if err := background.Guard(func() error { return io.EOF }); err != io.EOF {
		t.Errorf("an error became %v", err)
	}
	if err := background.Guard(func() error { return nil }); err != nil {
		t.Errorf("nothing became %v", err)
	}
}

func TestAPanicInAGoroutineEndsItsWorkAlone(t *testing.T) {
	ended := make(chan struct{})
	background.Go("a test", func() {
		defer close(ended)
		panic("odd")
	})
	<-ended

	var work background.Work
	work.Go("a test", func() { panic("odd") })
	work.Wait()
}

func TestAPanicInAGroupIsItsError(t *testing.T) {
	var plain background.Group
	plain.Go(func() error { panic("odd") })
	plain.Go(func() error { return nil })
	var panicked *background.PanicError
	if err := plain.Wait(); !errors.As(err, &panicked) {
		t.Errorf("the group ended with %v", err)
	}

	group, ctx := background.WithContext(t.Context())
	group.SetLimit(1)
	group.Go(func() error { return io.ErrUnexpectedEOF })
	if err := group.Wait(); err != io.ErrUnexpectedEOF || context.Cause(ctx) != io.ErrUnexpectedEOF {
		t.Errorf("the group ended with %v, its context with %v", err, context.Cause(ctx))
	}
}
