// Package insights stores what can be learned from questions: questions with their words, found and counted;
// conversations, searches and days; what the documentation does not answer; and the reports of all that. Questions are
// copies of what the journal holds.
package insights

import (
	"github.com/prometheus/client_golang/prometheus"

	"docent/persistence/catalog/database"
	"docent/persistence/catalog/listing"
)

// Part is what insights bring to the schema.
var Part = database.Part{
	Tables: []database.Table{
		database.TableOf[gapRow]("id"),
	},
	Steps: []database.Step{{Migration: database.ConversationsMigration, Do: placeQuestions}},
}

// A Store keeps questions, searches and what agents read, and says what they show. The last two are written every few seconds.
type Store struct {
	db       *database.DB
	listings *listing.Store
	searched searchLog
	reads    readLog
	texts    chan struct{} // receives when words of questions are to be written
	days     quarters      // of questions
	cited    quarters      // of pages that answers cite
}

// New makes the store in a database.
func New(db *database.DB, listings *listing.Store) *Store {
	s := &Store{db: db, listings: listings, texts: make(chan struct{}, 1)}
	listings.Add(questionListing(nil), s.changed, s.reset)
	db.Every(searchWait, "write searches", "could not count searches yet", "the last searches are not counted", s.writeSearches)
	db.Every(searchWait, "write reads", "what agents read is not counted yet", "what agents read last is not counted", s.writeReads)
	return s
}

// changed marks the counts of changed questions to be counted again, and their words to be written.
func (s *Store) changed(noted *listing.Changes) {
	s.days.forget(noted.Quarters)
	s.cited.forget(noted.Quarters)
	if noted.Texts {
		s.textsQueued()
	}
}

// reset marks everything to be counted again.
func (s *Store) reset() {
	s.days.forgetAll()
	s.cited.forgetAll()
}

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) { ch <- descSearchesDropped }

// Collect implements prometheus.Collector.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(descSearchesDropped, prometheus.CounterValue, float64(s.searched.refused.Load()))
}
