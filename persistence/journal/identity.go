package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"docent/api"
)

// A Identity says which journal this is, and what it knows of the catalog that it works with.
type Identity struct {
	ID       string
	Catalog  string // the identity of the catalog that it works with; empty if there is none yet
	Revision uint64 // the last change of the catalog that it has heard of
	Position uint64 // of its last event
	Seen     uint64 // the position that the catalog had seen, as far as the journal has heard
}

// hearEvery is the least time between two writes of what the journal has heard of the catalog.
const hearEvery = time.Second

// Hear makes the journal remember, about once a second and at the end, how far the catalog's changes have come, until
// stop is closed. Is what the journal says of itself already.
func (j *Journal) Hear(is Identity, revision func() uint64, stop <-chan struct{}) {
	Hear(j.log, j.Remember, is, revision, stop)
}

// Hear is Journal.Hear of a journal that remembers by the given function.
func Hear(log *slog.Logger, remember func(Identity) error, is Identity, revision func() uint64,
	stop <-chan struct{}) {
	store := func() {
		next := is
		if next.Revision = revision(); next.Revision <= is.Revision {
			return
		}
		if err := remember(next); err != nil {
			if !errors.Is(err, api.ErrShuttingDown) {
				log.Warn("the journal does not know yet of the catalogue's last changes", "error", err)
			}
			return
		}
		is = next
	}
	tick := time.NewTicker(hearEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			store()
			return
		case <-tick.C:
			store()
		}
	}
}

var metaIdentity = []byte("identity")

func (i Identity) encode() []byte {
	buf := appendString(appendString(head(nil), i.ID), i.Catalog)
	buf = binary.AppendUvarint(buf, i.Revision)
	seal(metaIdentity, buf)
	return buf
}

// decodeIdentity reads what stands in the file: nothing in one that an older version made.
func decodeIdentity(body []byte) (i Identity, err error) {
	if body == nil {
		return i, nil
	}
	if err := sealed(metaIdentity, body); err != nil {
		return i, err
	}
	d := decoder{rest: body[recordHead:]}
	i.ID, i.Catalog, i.Revision = d.string(maxEventType), d.string(maxEventType), d.uvarint()
	return i, d.err
}

// Identity is what the journal says of itself now.
func (j *Journal) Identity() Identity {
	is := *j.known.Load()
	is.Position = j.Position()
	j.followMu.Lock()
	defer j.followMu.Unlock()
	for _, m := range j.followers {
		is.Seen = max(is.Seen, m.acked)
	}
	return is
}

// Remember stores the journal's identity, and what it knows of the catalog.
func (j *Journal) Remember(is Identity) error {
	err := j.do(func(c *commit) error { return c.put(c.tx.Bucket(bucketMeta), metaIdentity, is.encode()) })
	if err != nil {
		return fmt.Errorf("remember the catalogue in the journal: %w", err)
	}
	j.known.Store(&is)
	return nil
}
