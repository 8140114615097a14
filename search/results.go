package search

import (
	"context"
	"path"
	"slices"
	"strings"

	"docent/internal/brief"
	"docent/internal/tracing"
)

// What a query found is remembered with the snapshot that it was found in, so an update forgets all of it at once. Only
// numbers and scores of sections are kept; they are written out for each caller, under the labels that the index
// has then. Callers who ask the same at the same time search once.

// A resultKey is all that a ranking depends on.
type resultKey struct {
	text                           string
	limit, sections                int
	threshold                      float64
	box                            bool
	here                           string // folder of the current page
	version, language, tag, groups string
	everywhere                     bool
	reader                         reader
	asked                          string // what tells the reader's language, if nothing else does
	meaning                        uint64 // serial of the vectors that had a part; 0 for words alone
}

func (k resultKey) size() int64 {
	return int64(len(k.text) + len(k.here) + len(k.version) + len(k.language) + len(k.tag) + len(k.groups) +
		len(k.asked) + len(k.reader.version) + 240)
}

// key names what a query finds. It must be the same only if that is the same.
func (s *snapshot) key(q *Query) resultKey {
	k := resultKey{text: q.Text, limit: q.pages(), sections: max(q.Sections, 1), threshold: q.Threshold, box: q.Box,
		tag: q.Filter.Tag}
	if !q.Box && len(q.Text) <= longestQuery {
		k.text = brief.Line(q.Text) // a question's words are what counts, not how they are set apart
	}
	k.version, k.language = q.Filter.Version, q.Filter.Language
	k.everywhere, k.reader = q.Everywhere, s.readerOf(q)
	if page, ok := s.here(q); ok { // its folder, version and language are all of it that counts
		k.here = path.Dir(s.pages[page].Path)
	}
	if len(s.locales) > 1 && k.language == "" && k.reader.locale < 0 {
		k.asked = strings.Join(q.Asked, "\x00")
	}
	if len(q.Filter.Groups) > 0 {
		groups := slices.Clone(q.Filter.Groups)
		slices.Sort(groups)
		k.groups = strings.Join(groups, "\x00")
	}
	return k
}

// search finds what answers a query, by what is remembered or by ranking.
func (s *snapshot) search(ctx context.Context, q Query) ([]Hit, error) {
	if len(s.sections) == 0 || strings.TrimSpace(q.Text) == "" {
		return nil, nil
	}
	if q.Weights != nil {
		tried, err := s.weighted(q.Weights)
		if err != nil {
			return nil, err
		}
		s = tried
	}
	found, _, err := s.both(ctx, q)
	if err == nil && q.Opening != "" {
		var first []scored
		if first, err = s.openers(ctx, &q); len(first) > 0 {
			found = append(first, slices.DeleteFunc(slices.Clone(found), func(f scored) bool {
				return slices.ContainsFunc(first, func(o scored) bool { return o.section == f.section })
			})...)
		}
	}
	if err != nil {
		return nil, err
	}
	return s.show(found, &q)
}

// versionAsked is the version that a query is made in; empty if it is the current one.
func (s *snapshot) versionAsked(q *Query) string {
	if q.Filter.Version != "" {
		return q.Filter.Version
	}
	return s.readerOf(q).version
}

// ranked ranks by words, or remembers what it found.
func (s *snapshot) ranked(ctx context.Context, q Query) ([]scored, error) {
	ctx, span := tracing.Start(ctx, "retrieve by words")
	found, remembered, err := s.remembered(ctx, q)
	span.Int("docent.sections", int64(len(found)))
	span.Bool("docent.remembered", remembered)
	span.Done(err)
	return found, err
}

// remembered ranks, or says that it did so before, for this caller or for another one.
func (s *snapshot) remembered(ctx context.Context, q Query) (list []scored, remembered bool, err error) {
	if s.results.Most <= 0 { // nothing is remembered
		list, err = s.rank(ctx, q)
		return list, false, err
	}
	key := s.key(&q)
	if found, ok := s.results.Get(key); ok {
		return found, true, nil
	}
	f, first := s.flights.Join(key)
	if !first {
		s.lookups.results.shared.Add(1)
		list, err = f.Wait(ctx)
		return list, err == nil, err
	}
	if found, ok := s.results.Peek(key); ok { // its flight has just ended
		s.lookups.results.shared.Add(1)
		s.flights.Land(key, f, func() ([]scored, error) { return found, nil })
		return found, true, nil
	}
	s.flights.Land(key, f, func() ([]scored, error) { // it is not ended by its caller's end: others may wait for it
		found, err := s.rank(context.WithoutCancel(ctx), q)
		if err == nil {
			s.results.Put(key, found)
		}
		return found, err
	})
	list, err = f.Wait(ctx)
	return list, false, err
}
