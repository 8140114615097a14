package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"docent/persistence/quota"
)

// The forms of what the journal stores. Every value begins with a CRC-32C of everything behind it, the number of its
// form, and a CRC-32C of its key. So a value that was damaged, or that stands under a key that is not its own, is never
// taken for data; and damaged keys, which would hide what stands under them, are found without reading the values.
//
//	events     position (8 bytes)         -> flags, stream hash, sequence, stream, type, data
//	snapshots  stream                     -> flags, sequence, position of the last event that it covers, state
//	pending    stream                     -> nothing more
//	claims     the caller's key           -> digest, expiry, owner, reference
//	uses       end (8), window (1), key   -> count
//	meta       "state"                    -> position, trimmed, the number of entries of each other bucket
const (
	recordForm       = 1
	recordHead       = 4 + 1 + 4 // checksum, form, checksum of the key
	maxStreamLen     = 512       // bytes of a stream's name
	maxClaimKey      = 4 << 10   // bytes of an idempotency key, qualified
	maxUseKey        = 1 << 10   // bytes of what a quota counts
	maxEventType     = 255
	maxAppendBytes   = 32 << 20
	maxSnapshotBytes = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head makes room for what seal fills in.
func head(buf []byte) []byte { return append(buf, 0, 0, 0, 0, recordForm, 0, 0, 0, 0) }

func seal(key, body []byte) {
	binary.BigEndian.PutUint32(body[5:], crc32.Checksum(key, castagnoli))
	binary.BigEndian.PutUint32(body, crc32.Checksum(body[4:], castagnoli))
}

func sealed(key, body []byte) error {
	switch {
	case len(body) < recordHead:
		return fmt.Errorf("%d bytes are too short", len(body))
	case binary.BigEndian.Uint32(body) != crc32.Checksum(body[4:], castagnoli):
		return errors.New("the checksum does not match")
	case !keySealed(key, body):
		return errors.New("it stands under a wrong key")
	case body[4] != recordForm:
		return fmt.Errorf("form %d is unknown", body[4])
	}
	return nil
}

// keySealed checks the key alone.
func keySealed(key, body []byte) bool {
	return len(body) >= recordHead && binary.BigEndian.Uint32(body[5:]) == crc32.Checksum(key, castagnoli)
}

func positionKey(pos uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 8), pos) }

// streamHash is FNV-1a. It stands beside the stream's name in every event, so that one damaged place in the record
// cannot hide whose it was.
func streamHash(stream string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(stream) {
		h = (h ^ uint64(stream[i])) * 1099511628211
	}
	return h
}

const (
	flagPending = 1 << iota // the stream calls for work once this event is applied
	flagRemoved             // not an event: the stream ends here, with everything of it
)

type eventRecord struct {
	flags  byte
	hash   uint64
	seq    uint64
	stream string
	event  Event
}

const eventFixed = recordHead + 1 + 8

func appendEvent(buf []byte, r *eventRecord) []byte {
	buf = append(head(buf), r.flags)
	buf = binary.BigEndian.AppendUint64(buf, r.hash)
	buf = binary.AppendUvarint(buf, r.seq)
	buf = appendString(buf, r.stream)
	buf = appendString(buf, r.event.Type)
	return append(buf, r.event.Data...)
}

// parseEvent reads a record without regard to its checksum. The data shares the body's memory.
func parseEvent(body []byte) (eventRecord, error) {
	var r eventRecord
	if len(body) < eventFixed {
		return r, fmt.Errorf("%d bytes are too short", len(body))
	}
	r.flags = body[recordHead]
	r.hash = binary.BigEndian.Uint64(body[recordHead+1:])
	d := decoder{rest: body[eventFixed:]}
	r.seq = d.uvarint()
	r.stream = d.string(maxStreamLen)
	r.event.Type = d.string(maxEventType)
	r.event.Data = d.rest
	if d.err == nil && r.hash != streamHash(r.stream) {
		d.err = errors.New("the stream's name does not match")
	}
	return r, d.err
}

// decodeEvent verifies and reads a record. What it could read of a damaged one comes along with the error.
func decodeEvent(key, body []byte) (eventRecord, error) {
	r, perr := parseEvent(body)
	if err := sealed(key, body); err != nil {
		return r, err
	}
	return r, perr
}

type snapshotRecord struct {
	flags byte
	seq   uint64
	pos   uint64
	state []byte
}

func encodeSnapshot(key []byte, r *snapshotRecord) []byte {
	buf := make([]byte, 0, recordHead+1+2*binary.MaxVarintLen64+len(r.state))
	buf = append(head(buf), r.flags)
	buf = binary.AppendUvarint(buf, r.seq)
	buf = binary.AppendUvarint(buf, r.pos)
	buf = append(buf, r.state...)
	seal(key, buf)
	return buf
}

func parseSnapshot(body []byte) (snapshotRecord, error) {
	var r snapshotRecord
	if len(body) < recordHead+1 {
		return r, fmt.Errorf("%d bytes are too short", len(body))
	}
	r.flags = body[recordHead]
	d := decoder{rest: body[recordHead+1:]}
	r.seq = d.uvarint()
	r.pos = d.uvarint()
	r.state = d.rest
	return r, d.err
}

func decodeSnapshot(key, body []byte) (snapshotRecord, error) {
	r, perr := parseSnapshot(body)
	if err := sealed(key, body); err != nil {
		return r, err
	}
	return r, perr
}

func encodePending(key []byte) []byte {
	buf := head(nil)
	seal(key, buf)
	return buf
}

func encodeClaim(c *Claim) []byte {
	buf := make([]byte, 0, recordHead+len(c.Digest)+8+4+len(c.Owner)+len(c.Ref))
	buf = append(head(buf), c.Digest[:]...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(c.Expires.UnixNano()))
	buf = appendString(buf, c.Owner)
	buf = append(buf, c.Ref...)
	seal([]byte(c.Key), buf)
	return buf
}

func decodeClaim(key, body []byte) (Claim, error) {
	c := Claim{Key: string(key)}
	if err := sealed(key, body); err != nil {
		return c, err
	}
	body = body[recordHead:]
	if len(body) < len(c.Digest)+8 {
		return c, errors.New("the record is cut off")
	}
	body = body[copy(c.Digest[:], body):]
	c.Expires = time.Unix(0, int64(binary.BigEndian.Uint64(body))).UTC()
	d := decoder{rest: body[8:]}
	c.Owner = d.string(maxStreamLen)
	c.Ref = string(d.rest)
	return c, d.err
}

// A useSlot names one stored count: how often key was used in the slot of window that stops counting at end.
type useSlot struct {
	window quota.Window
	end    int64 // Unix seconds
	key    string
}

func (u useSlot) bytes() []byte {
	buf := make([]byte, 0, 9+len(u.key))
	buf = binary.BigEndian.AppendUint64(buf, uint64(u.end))
	buf = append(buf, byte(u.window))
	return append(buf, u.key...)
}

func decodeUse(key, body []byte) (useSlot, uint32, error) {
	if err := sealed(key, body); err != nil {
		return useSlot{}, 0, err
	}
	if len(key) < 9 || len(body) != recordHead+4 {
		return useSlot{}, 0, errors.New("the record is cut off")
	}
	u := useSlot{end: int64(binary.BigEndian.Uint64(key)), window: quota.Window(key[8]), key: string(key[9:])}
	if !u.window.Known() {
		return u, 0, fmt.Errorf("window %d is unknown", u.window)
	}
	return u, binary.BigEndian.Uint32(body[recordHead:]), nil
}

func encodeUse(key []byte, count uint32) []byte {
	buf := binary.BigEndian.AppendUint32(head(nil), count)
	seal(key, buf)
	return buf
}

// The buckets whose entries are counted. An entry that a damaged page hides is missed by its count.
const (
	nEvents = iota
	nSnapshots
	nPending
	nClaims
	nUses
	nCounted
)

func encodeFormat() []byte {
	buf := append(head(nil), Format...)
	seal(metaFormat, buf)
	return buf
}

func decodeFormat(body []byte) error {
	if err := sealed(metaFormat, body); err != nil {
		return fmt.Errorf("%w: the format's name: %w", ErrCorrupt, err)
	}
	if f := string(body[recordHead:]); f != Format {
		return fmt.Errorf("its format is %q, and this version reads %q", f, Format)
	}
	return nil
}

// A fileState is written with every commit.
type fileState struct {
	position uint64           // of the last event
	trimmed  uint64           // highest position of an event that was removed
	counts   [nCounted]uint64 // entries of each bucket
}

func (s *fileState) encode(key []byte) []byte {
	buf := head(nil)
	buf = binary.BigEndian.AppendUint64(buf, s.position)
	buf = binary.BigEndian.AppendUint64(buf, s.trimmed)
	for _, n := range s.counts {
		buf = binary.BigEndian.AppendUint64(buf, n)
	}
	seal(key, buf)
	return buf
}

func decodeState(key, body []byte) (fileState, error) {
	var s fileState
	if err := sealed(key, body); err != nil {
		return s, err
	}
	body = body[recordHead:]
	if len(body) != 8*(2+nCounted) {
		return s, errors.New("the record is cut off")
	}
	s.position, s.trimmed = binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:])
	for i := range s.counts {
		s.counts[i] = binary.BigEndian.Uint64(body[16+8*i:])
	}
	return s, nil
}

func appendString(buf []byte, s string) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(s)))
	return append(buf, s...)
}

// A decoder reads fields one after the other and remembers the first thing that was wrong.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) uvarint() uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.err = errors.New("the record is cut off")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) string(limit int) string {
	n := d.uvarint()
	if d.err == nil && n > uint64(min(limit, math.MaxInt32)) {
		d.err = fmt.Errorf("a name of %d bytes is too long", n)
	}
	if d.err == nil && n > uint64(len(d.rest)) {
		d.err = errors.New("the record is cut off")
	}
	if d.err != nil {
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}
