// Package nodes stores what several nodes share in PostgreSQL, beside the rows of the catalog and the journal: large
// values, leases, the states of sources that all serve, vectors, and counts that hold for all of them together.
package nodes

import (
	"sync/atomic"

	"docent/persistence/catalog/database"
)

// A Store holds what several nodes share.
type Store struct {
	db    *database.DB
	swept atomic.Int64 // when counts were last swept
}

// New makes the store in a database.
func New(db *database.DB) *Store { return &Store{db: db} }
