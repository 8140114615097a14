package journal

import (
	"encoding/binary"
	"fmt"
)

// A Identity says which journal this is, and what it knows of the catalog that it works with.
type Identity struct {
	ID       string
	Catalog  string // the identity of the catalog that it works with; empty if there is none yet
	Revision uint64 // the last change of the catalog that it has heard of
	Position uint64 // of its last event
	Seen     uint64 // the position that the catalog had seen, as far as the journal has heard
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
		return fmt.Errorf("remember the catalog in the journal: %w", err)
	}
	j.known.Store(&is)
	return nil
}
