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
	in = make([]int, len(terms))
	err = l.eachOpen(ctx, project, nil, func(_ *Source, _ bool, snap *snapshot) error {
		of += len(snap.sections)
		return snap.addRarity(ctx, terms, in)
	})
	return in, of, err
}

// addRarity adds in how many sections each term stands.
func (s *snapshot) addRarity(ctx context.Context, terms []string, in []int) error {
	for i, term := range terms {
		if err := ctx.Err(); err != nil {
			return err
		}
		most := 0
		for _, field := range []int{page.FieldHeading, page.FieldBody, page.FieldCode} {
			reader, err := s.reader.TermFieldReader(ctx, []byte(term), page.SectionFieldNames[field], false, false, false)
			if err != nil {
				return fmt.Errorf("count the sections of a term: %w", err)
			}
			most = max(most, int(reader.Count()))
			reader.Close()
		}
		in[i] += most
	}
	return nil
}
