package stores

import (
	"context"
	"encoding/hex"

	"docent/search"
)

// written gives the questions that a model wrote for sections.
func (s *Stores) written(keys []search.SectionKey) (map[search.SectionKey][]string, error) {
	names := make([]string, 0, len(keys))
	seen := make(map[search.SectionKey]bool, len(keys))
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			names = append(names, hex.EncodeToString(k[:]))
		}
	}
	list, err := s.Catalog.WrittenQuestions(context.Background(), names)
	if err != nil {
		return nil, err
	}
	out := make(map[search.SectionKey][]string, len(list))
	for _, w := range list {
		var k search.SectionKey
		if raw, err := hex.DecodeString(w.Key); err == nil && len(raw) == len(k) {
			copy(k[:], raw)
			out[k] = w.Questions
		}
	}
	return out, nil
}
