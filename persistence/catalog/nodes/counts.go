package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// A Bound is what uses are counted for, and how many there may be in a window.
type Bound struct {
	Name string
	Most int
}

// Counts are counted by all nodes together, for a while each: attempts to sign in, solutions that were used. They are in
// a catalog that was opened for several nodes alone; a single node counts in memory.
type Counts struct{ s *Store }

// Counts are those of all nodes.
func (s *Store) Counts() *Counts { return &Counts{s} }

// countsSwept is how often counts whose time is over are removed.
const countsSwept = time.Minute

// Take counts one more use of each bound, or none and says how long to wait. The window begins with the first use. Which
// time it is the database says: the clocks of nodes may differ.
func (n *Counts) Take(ctx context.Context, window time.Duration, bounds ...Bound) (wait time.Duration, err error) {
	n.s.sweep()
	bounds = slices.Clone(bounds) // in one order everywhere: two that wait for each other would wait forever
	slices.SortFunc(bounds, func(a, b Bound) int { return strings.Compare(a.Name, b.Name) })
	over := errors.New("there were too many")
	err = n.s.db.Write.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		for _, b := range bounds {
			var taken int
			var left float64
			err := tx.QueryRowContext(ctx, `INSERT INTO node_counts (name, taken, until_at)
				VALUES (?, 1, now() + ? * interval '1 millisecond') ON CONFLICT (name) DO UPDATE SET
				taken = CASE WHEN node_counts.until_at > now() THEN node_counts.taken + 1 ELSE 1 END,
				until_at = CASE WHEN node_counts.until_at > now() THEN node_counts.until_at ELSE EXCLUDED.until_at END
				RETURNING taken, extract(epoch FROM until_at - now())::float8`, countName(b.Name), window.Milliseconds()).Scan(&taken, &left)
			if err != nil {
				return err
			}
			if taken > b.Most {
				// The window may have begun after this transaction did, which waited for the row.
				wait = max(wait, min(time.Duration(left*float64(time.Second)), window), time.Millisecond)
			}
		}
		if wait > 0 {
			return over // and nothing is counted
		}
		return nil
	})
	if errors.Is(err, over) {
		return wait, nil
	}
	return 0, n.s.db.Fail("count a use", err)
}

// Give takes one use of each name back.
func (n *Counts) Give(ctx context.Context, names ...string) error {
	names = slices.Clone(names)
	slices.Sort(names)
	err := n.s.db.Write.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		for _, name := range names {
			_, err := tx.ExecContext(ctx, "UPDATE node_counts SET taken = taken - 1 WHERE name = ? AND taken > 0", countName(name))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n.s.db.Fail("give a use back", err)
}

// countName is what is stored of a name: what people type is in it, such as addresses and worse.
func countName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// sweep removes counts whose time is over, now and then and in the background.
func (s *Store) sweep() {
	now := time.Now().UnixNano()
	last := s.swept.Load()
	if now-last < int64(countsSwept) || !s.swept.CompareAndSwap(last, now) {
		return
	}
	s.db.Work.Go("persistence/catalog.sweep", func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.db.CloseWait())
		defer cancel()
		if _, err := s.db.Write.ExecContext(ctx, "DELETE FROM node_counts WHERE until_at < now()"); err != nil {
			s.db.Log.Warn("could not remove expired counts yet", "error", err)
		}
	})
}
