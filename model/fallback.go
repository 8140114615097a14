package model

import (
	"context"
	"errors"
)

// FallbackNotice is what an answer begins with that the built-in model gives in place of another.
const FallbackNotice = "*The language model is not available at the moment, so this answer is put together from the documentation's own sentences.*\n\n"

// FallsBack reports whether the built-in model answers where the named one gave this error and has written nothing: it
// could not be reached, failed, fell silent, refused its key or has left the configuration. A model that declined has
// decided; and who configured the model may want its errors instead.
func (r *Registry) FallsBack(name string, cause error) bool {
	p, err := r.find(name)
	if err != nil {
		return true
	}
	m, ok := p.(*remote)
	var f *Failure
	return ok && !m.NoFallback && errors.As(cause, &f) && !errors.Is(cause, ErrRefused)
}

// Fallback lets the built-in model answer in place of the named one, and has it say so first.
func (r *Registry) Fallback(ctx context.Context, name string, req Request, emit func(Delta) error) (Result, error) {
	asked := r.configured(name)
	counted, ok := r.fallbacks[asked]
	if !ok {
		counted = r.fallbacks[""]
	}
	counted.Add(1)
	var result Result
	err := emit(Delta{Text: FallbackNotice})
	if err == nil {
		result, err = extractive{name: Builtin}.answer(ctx, req, emit)
	}
	result.FallbackFor = asked
	return result, err
}

// configured is the name in the configuration of a model that is asked for by any name.
func (r *Registry) configured(name string) string {
	if _, own := r.models[name]; own {
		return name
	}
	if alias, is := r.aliases[name]; is {
		name = alias
	}
	return or(name, r.standard)
}
