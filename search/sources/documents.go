package sources

import (
	"context"
	"errors"

	"docent/api"
	"docent/search"
)

// Documents is the library for those who answer readers. An index that cannot be used is rebuilt as soon as somebody
// needs it.
type Documents struct {
	*search.Library
	Reader *Reader
}

// Search is the library's.
func (d Documents) Search(ctx context.Context, project api.ProjectID, q search.Query) ([]search.Hit, error) {
	hits, err := d.Library.Search(ctx, project, q)
	if errors.Is(err, search.ErrNotIndexed) && d.Reader.make(project).failed() {
		// What is wrong with the project's own source takes the others away from nobody.
		if further, ok := d.Reader.withoutFirst(ctx, project, q); ok {
			return d.Library.Search(ctx, project, further)
		}
	}
	return hits, err
}

// Explain is the library's.
func (d Documents) Explain(ctx context.Context, project api.ProjectID, q search.Query,
	expected ...string) (search.Explanation, error) {
	e, err := d.Library.Explain(ctx, project, q, expected...)
	if errors.Is(err, search.ErrNotIndexed) {
		d.Reader.make(project)
	}
	return e, err
}

// Page is the library's.
func (d Documents) Page(ctx context.Context, project api.ProjectID, path string, groups []string) (search.Page, error) {
	page, err := d.Library.Page(ctx, project, path, groups)
	if errors.Is(err, search.ErrNotIndexed) {
		d.Reader.make(project)
	}
	return page, err
}

// Indexed returns when the project has an index, or when it could not be made.
func (d Documents) Indexed(ctx context.Context, project api.ProjectID) error {
	m := d.Reader.make(project)
	select {
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
