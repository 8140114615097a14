package index

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/blevesearch/bleve/v2/index/scorch"
	bleveindex "github.com/blevesearch/bleve_index_api"
)

// Segments are those of Bleve's index. So many of the first ones are also the first ones of the index before, which may
// be nil: the numbers and the words of their documents are the same.
func Segments(now, before bleveindex.IndexReader) (all []*scorch.SegmentSnapshot, shared int, err error) {
	index, ok := now.(*scorch.IndexSnapshot)
	if !ok {
		return nil, 0, errors.New("the index is none of Bleve's segments")
	}
	all = index.Segments()
	if was, ok := before.(*scorch.IndexSnapshot); ok {
		for i, seg := range was.Segments() {
			if i == len(all) || all[i].Id() != seg.Id() || all[i].FullSize() != seg.FullSize() {
				break
			}
			shared++
		}
	}
	return all, shared, nil
}

// Words are a dictionary, sorted, with how many documents have each.
type Words struct {
	Texts []string
	In    []uint32
}

// With are also the words of a field in further segments.
func (w Words) With(field string, segments []*scorch.SegmentSnapshot) (Words, error) {
	for _, seg := range segments {
		dict, err := seg.Segment().Dictionary(field)
		if err != nil {
			return w, fmt.Errorf("read dictionary: %w", err)
		}
		more, known := Words{make([]string, 0, len(w.Texts)), make([]uint32, 0, len(w.Texts))}, 0
		words := dict.AutomatonIterator(nil, nil, nil)
		last := ""
		for {
			entry, err := words.Next()
			if err != nil {
				return w, fmt.Errorf("read dictionary: %w", err)
			}
			if entry == nil {
				break
			}
			if entry.Term <= last && last != "" { // all that is looked up in it needs the order
				return w, errors.New("read dictionary: its words are not in order")
			}
			in := entry.Count
			for known < len(w.Texts) && w.Texts[known] < entry.Term {
				more.Texts, more.In = append(more.Texts, w.Texts[known]), append(more.In, w.In[known])
				known++
			}
			if known < len(w.Texts) && w.Texts[known] == entry.Term {
				in, last = in+uint64(w.In[known]), w.Texts[known]
				known++
			} else {
				last = strings.Clone(entry.Term)
			}
			more.Texts, more.In = append(more.Texts, last), append(more.In, uint32(min(in, math.MaxUint32)))
		}
		more.Texts, more.In = append(more.Texts, w.Texts[known:]...), append(more.In, w.In[known:]...)
		w = more
	}
	return w, nil
}
