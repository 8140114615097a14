// Package persistence makes sure that the journal and the catalog of an installation belong together.
//
// The journal tells what became of jobs and threads, the catalog who may ask for them, and each holds copies of what
// the other once said. Each has an identity and remembers the other's, with how far the other had come. So a store that
// is missing, another one's or an older copy is not taken for a new one.
package persistence

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/persistence/catalog"
	"docent/persistence/journal"
)

// A MismatchError says why journal and catalog cannot be used together.
type MismatchError struct{ Reason string }

func (e *MismatchError) Error() string {
	return "the journal and the catalog do not belong together: " + e.Reason
}

// disagreement says why the two cannot be used together; empty if they can. After a restore, the listings may have
// seen more than the journal holds: a backup copies the catalog after the journal.
func disagreement(j journal.Identity, c catalog.Identity, restored bool) string {
	switch {
	case c.Journal != "" && c.Journal != j.ID && j.Catalog == "" && j.Position == 0:
		return fmt.Sprintf("the journal is new, and the catalog works with one that it has seen up to position %d",
			c.Position)
	case c.Journal != "" && c.Journal != j.ID:
		return fmt.Sprintf("the catalog works with another journal, which it has seen up to position %d; "+
			"this one ends at position %d", c.Position, j.Position)
	case j.Catalog != "" && j.Catalog != c.ID && c.Journal == "" && c.Position == 0:
		return fmt.Sprintf("the catalog is new, and the journal, which ends at position %d, works with another one",
			j.Position)
	case j.Catalog != "" && j.Catalog != c.ID:
		return fmt.Sprintf("the journal, which ends at position %d, works with another catalog", j.Position)
	case c.Position > j.Position && !restored:
		return fmt.Sprintf("the journal ends at position %d, and the catalog has seen it up to position %d: "+
			"it is an older copy, or its last %d events are lost", j.Position, c.Position, c.Position-j.Position)
	case j.Revision > c.Revision:
		return fmt.Sprintf("the catalog is an older copy: its last %d changes of keys, projects, pull requests and the "+
			"like, of which the journal has heard, are lost", j.Revision-c.Revision)
	case j.Seen > c.Position && !c.Partial:
		return fmt.Sprintf("the catalog is an older copy, or a new one: it has seen the journal up to position %d, "+
			"and the journal has heard that it had seen position %d", c.Position, j.Seen)
	}
	return ""
}

// Pair makes sure that journal and catalog belong together, and has each remember how far the other has come until
// end is called, which must be before either is closed. Two that know of no other store become a pair: new ones, and
// those of a version that had no identities. If they do not belong together it changes nothing and fails with a
// *MismatchError.
//
// Restored says that both were put back from a backup.
func Pair(ctx context.Context, j journal.Store, c *catalog.Catalog, restored bool) (end func(), err error) {
	is, has, err := identities(ctx, j, c)
	if err != nil {
		return nil, err
	}
	if reason := disagreement(is, has, restored); reason != "" {
		return nil, &MismatchError{reason}
	}
	return bind(ctx, j, c, is, has)
}

// Adopt makes a pair of a journal and a catalog as they stand. The listings are emptied, and follow the journal from
// its start: positions of another journal mean nothing in this one.
func Adopt(ctx context.Context, j journal.Store, c *catalog.Catalog) error {
	is, has, err := identities(ctx, j, c)
	if err != nil {
		return err
	}
	if err := c.EmptyListings(ctx); err != nil {
		return err
	}
	has.Position = is.Position + 1 // so that it is stored
	end, err := bind(ctx, j, c, is, has)
	if err == nil {
		end()
	}
	return err
}

// Disagreement says why journal and catalog cannot be used together; empty if they can.
func Disagreement(ctx context.Context, j journal.Store, c *catalog.Catalog) (string, error) {
	is, has, err := identities(ctx, j, c)
	return disagreement(is, has, false), err
}

func identities(ctx context.Context, j journal.Store, c *catalog.Catalog) (
	is journal.Identity, has catalog.Identity, err error) {
	is = j.Identity()
	has, err = c.Identity(ctx)
	is.Position = j.Identity().Position // others write, and their listings follow: read after what these have seen
	return is, has, err
}

// bind stores what each has to know of the other. The catalog comes first: a journal that knows of a catalog which
// does not know of it would be another one's.
func bind(ctx context.Context, j journal.Store, c *catalog.Catalog, is journal.Identity, has catalog.Identity) (
	end func(), err error) {
	if is.ID == "" {
		is.ID = rand.Text()
		if err := j.Remember(is); err != nil {
			return nil, err
		}
	}
	if has.Journal != is.ID || has.Position > is.Position {
		if ok, err := c.RememberJournal(ctx, has, is.ID, is.Position); err != nil {
			return nil, err
		} else if !ok {
			// Nodes that start at once on new stores all say so, and one is the first.
			if has, err = c.Identity(ctx); err != nil {
				return nil, err
			}
			if has.Journal != is.ID {
				return nil, &MismatchError{"another process has just made the catalog work with another journal"}
			}
		}
	}
	// What it has not heard of yet is stored later: a disk may be full now.
	if is.Catalog != has.ID || is.Revision > has.Revision {
		is.Catalog, is.Revision = has.ID, has.Revision
		if err := j.Remember(is); err != nil {
			return nil, err
		}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	background.Essential("persistence.bind", func() {
		defer close(ended)
		hear(j, c, is, stop)
	})
	return sync.OnceFunc(func() {
		close(stop)
		<-ended
	}), nil
}

// hearEvery is the least time between two writes of what the journal has heard of the catalog.
const hearEvery = time.Second

// hear makes the journal remember, about once a second and at the end, how far the catalog's changes have come, until
// stop is closed. Is what the journal says of itself already.
func hear(j journal.Store, c *catalog.Catalog, is journal.Identity, stop <-chan struct{}) {
	tick := time.NewTicker(hearEvery)
	defer tick.Stop()
	for stopped := false; !stopped; {
		select {
		case <-stop:
			stopped = true
		case <-tick.C:
		}
		next := is
		if next.Revision = c.Revision(); next.Revision <= is.Revision {
			continue
		}
		switch err := j.Remember(next); {
		case err == nil:
			is = next
		case !errors.Is(err, api.ErrShuttingDown):
			c.Log.Warn("the journal does not reflect the catalog's latest changes yet", "error", err)
		}
	}
}
