package search

// retuned is the same index ranked with other weights.
func retuned(s *snapshot, t Tuning) *snapshot {
	n := &snapshot{shelf: s.shelf, dir: s.dir, manifest: s.manifest, records: s.records, index: s.index, reader: s.reader, text: s.text,
		segments: s.segments, tuning: &t, pages: s.pages, pageOf: s.pageOf, firstOf: s.firstOf, sections: s.sections, sectionOf: s.sectionOf,
		byKey: s.byKey, words: s.words, titles: s.titles, languages: s.languages, cacheBytes: s.cacheBytes}
	n.measure()
	n.rarity = countRarities(n)
	return n
}
