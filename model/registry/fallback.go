package registry

import (
	"context"

	"docent/model"
	"docent/model/builtin"
	"docent/model/remote"
)

// FallsBack reports whether the built-in model answers in place of the named one, which gave this error and has written
// nothing. It does if the model failed, or is not in the configuration any more.
func (r *Registry) FallsBack(name string, cause error) bool {
	p, err := r.find(name)
	if err != nil {
		return true
	}
	m, ok := p.(*remote.Model)
	return ok && m.Replaceable(cause)
}

// Fallback lets the built-in model answer in place of the named one, and has it say so first.
func (r *Registry) Fallback(
	ctx context.Context, name string, req model.Request, emit func(model.Delta) error,
) (model.Result, error) {
	asked := r.Name(name)
	fallbacks := r.now.Load().fallbacks
	counted, ok := fallbacks[asked]
	if !ok {
		counted = fallbacks[""]
	}
	counted.Add(1)
	var result model.Result
	err := emit(model.Delta{Text: model.Instead(builtin.Language(&req))})
	if err == nil {
		result, err = here(ctx, model.Builtin, builtin.New(model.Builtin), req, emit)
	}
	result.FallbackFor = asked
	return result, err
}
