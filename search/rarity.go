package search

import (
	"context"
	"fmt"

	"docent/api"
	"docent/search/page"
)

// Rarity says in how many sections each of these terms stands, and how many sections there are. Terms are as package
// analysis gives them.
func (l *Library) Rarity(ctx context.Context, project api.ProjectID, terms []string) (in []int, of int, err error) {
	snap, err := l.acquire(project)
	if err != nil {
		return nil, 0, err
	}
	defer snap.release()
	in = make([]int, len(terms))
	for i, term := range terms {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		for _, field := range []int{page.FieldHeading, page.FieldBody, page.FieldCode} {
			reader, err := snap.reader.TermFieldReader(ctx, []byte(term), page.SectionFieldNames[field], false, false, false)
			if err != nil {
				return nil, 0, fmt.Errorf("count the sections of a term: %w", err)
			}
			in[i] = max(in[i], int(reader.Count()))
			reader.Close()
		}
	}
	return in, len(snap.sections), nil
}

// A PageName is a page of an index, as readers find it.
type PageName struct{ Path, URL, Title string }

// Pages lists the pages that searches can find, in the order of their paths.
func (l *Library) Pages(ctx context.Context, project api.ProjectID) ([]PageName, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	snap, err := l.acquire(project)
	if err != nil {
		return nil, err
	}
	defer snap.release()
	out := make([]PageName, 0, len(snap.pages))
	for _, r := range snap.pages {
		if !r.Hidden {
			out = append(out, PageName{Path: r.Path, URL: snap.url(r, ""), Title: r.Title})
		}
	}
	return out, nil
}
