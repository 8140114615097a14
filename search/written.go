package search

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"docent/api"
	"docent/search/analysis"
	"docent/search/meaning"
	"docent/search/page"
	"docent/search/written"
)

// A SectionKey is the hash of what a section says.
type SectionKey = meaning.Key

// A SectionText is a section as a language model gets it: its page, its headings and its text.
type SectionText struct {
	Key  SectionKey
	Text string
}

// openWritten reads the questions of a generation that is being opened. Without them it is served all the same.
func (s *snapshot) openWritten() {
	read := s.library.options.Written
	if read == nil {
		return
	}
	keys, err := s.sectionKeys()
	var of map[SectionKey][]string
	if err == nil {
		of, err = read(slices.DeleteFunc(slices.Clone(keys), func(k SectionKey) bool { return k == SectionKey{} }))
	}
	if err != nil {
		s.library.log.Warn("written questions cannot be used", "index", s.Dir, "error", err)
		return
	}
	s.written = written.New(len(keys), func(section uint32) ([]string, string) {
		return of[keys[section]], analysis.Language(s.pages[s.pageOf[section]].Locale)
	})
	s.fixed += s.written.Bytes()
	s.memory.Add(s.written.Bytes())
}

// addWritten adds what a term weighs in the questions of sections.
func (s *snapshot) addWritten(term string, d *decoder) {
	section, whole := float32(s.tuning.Written), float32(s.tuning.PageWritten)
	s.written.Each(term, func(at uint32, weight float32) {
		d.sections.add(at, weight*section)
		d.pages.add(s.pageOf[at], weight*whole)
	})
}

// Generation names the state of a project's index on disk; empty if there is none. It opens nothing.
func (l *Library) Generation(project api.ProjectID) string {
	raw, err := os.ReadFile(filepath.Join(l.dir, folderOf(project), "CURRENT"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// Sections hands the sections of a project's index whose keys are lacking to do, some at a time, and says of which
// generation they are and how many different ones there are. It stops, without an error and with no generation, when a
// newer one takes its place.
func (l *Library) Sections(ctx context.Context, project api.ProjectID, longest, some int,
	lacking func(all []SectionKey) ([]SectionKey, error), do func([]SectionText) error) (generation string, err error) {
	snap, err := l.acquire(project)
	if err != nil {
		return "", err
	}
	defer snap.release()
	keys, err := snap.sectionKeys()
	if err != nil {
		return "", err
	}
	at := make(map[SectionKey]uint32, len(keys))
	var distinct []SectionKey
	for n, k := range keys {
		size := snap.sections[n].Len[page.FieldBody] + snap.sections[n].Len[page.FieldCode]
		if _, seen := at[k]; k != (SectionKey{}) && size > 0 && !seen {
			at[k] = uint32(n)
			distinct = append(distinct, k)
		}
	}
	missing, err := lacking(distinct)
	if err != nil {
		return "", err
	}
	for chunk := range slices.Chunk(missing, some) {
		if filepath.Base(snap.Dir) != l.Generation(project) {
			return "", nil
		}
		texts := make([]SectionText, len(chunk))
		for i, k := range chunk {
			if texts[i].Text, err = snap.passage(at[k], longest); err != nil {
				return "", err
			}
			texts[i].Key = k
		}
		if err := do(texts); err != nil {
			return "", err
		}
	}
	return filepath.Base(snap.Dir), ctx.Err()
}

// Reopen has a project's index read the questions of its sections again, if it is open.
func (l *Library) Reopen(project api.ProjectID) error {
	p, err := l.project(project)
	if err != nil {
		return err
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	old, err := p.take()
	if old == nil {
		return err
	}
	defer old.release()
	gen := *old.Generation
	gen.Manifest = *old.labels()
	if gen.Text, err = os.Open(filepath.Join(gen.Dir, "text")); err != nil {
		return err
	}
	snap, err := openSnapshot(gen.Dir, l, &gen, old)
	if err != nil {
		return err
	}
	surplus, err := l.install(p, snap, false)
	if err != nil {
		snap.close()
	}
	closeAll(surplus)
	return err
}
