package journal

import (
	"bytes"
	"encoding/binary"
	"time"

	"go.etcd.io/bbolt"

	"docent/persistence/quota"
)

const (
	sweepEvery = 10 * time.Minute
	marksEvery = time.Second
)

// claimKeep is how long an expired claim stays on disk, for a clock that jumps forward and comes back.
const claimKeep = 25 * time.Hour

// sweepLoop removes, now and then, what has long expired.
func (j *Journal) sweepLoop() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-tick.C:
			j.sweep()
		}
	}
}

func (j *Journal) sweep() {
	now := j.now()
	j.quotas.Sweep(now)
	j.sweepClaims(now)
	j.sweepUses(now)
}

// sweepUses removes quota counts that ended long ago. They stand in order of their ends.
func (j *Journal) sweepUses(now time.Time) {
	before := now.Add(-quota.Keep).Unix()
	old := func(key []byte) bool { return len(key) >= 9 && int64(binary.BigEndian.Uint64(key)) < before }
	for more := true; more && !j.closing(); {
		if err := j.view("sweep quotas", func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(bucketUses).Cursor().First()
			more = k != nil && old(k)
			return nil
		}); err != nil || !more {
			return
		}
		err := j.do(func(c *commit) error {
			cur := c.uses.Cursor()
			n := 0
			for k, _ := cur.First(); k != nil && old(k) && n < groupSweep; k, _ = cur.First() {
				if err := c.uses.Delete(bytes.Clone(k)); err != nil {
					return err
				}
				c.state.counts[nUses]--
				c.wrote = true
				n++
			}
			return nil
		})
		if err != nil {
			j.log.Warn("sweep quotas", "error", err)
			return
		}
	}
}

// sweepClaims removes claims that expired long ago, a bounded number in each commit.
func (j *Journal) sweepClaims(now time.Time) {
	const chunk = 1024
	var from []byte
	for more := true; more && !j.closing(); {
		var old [][]byte
		err := j.view("sweep claims", func(tx *bbolt.Tx) error {
			c := tx.Bucket(bucketClaims).Cursor()
			k, v := c.Seek(from)
			for range chunk {
				if k == nil {
					break
				}
				if claim, err := decodeClaim(k, v); err == nil && claim.Expires.Add(claimKeep).Before(now) {
					old = append(old, append([]byte(nil), k...))
				}
				k, v = c.Next()
			}
			more = k != nil
			from = append(from[:0], k...)
			return nil
		})
		if err != nil {
			j.log.Error("sweep claims", "error", err)
			return
		}
		if len(old) == 0 {
			continue
		}
		err = j.do(func(c *commit) error {
			for _, k := range old { // it may have been replaced meanwhile
				v := c.claims.Get(k)
				if v == nil {
					continue
				}
				if claim, err := decodeClaim(k, v); err != nil || !claim.Expires.Add(claimKeep).Before(now) {
					continue
				}
				if err := c.claims.Delete(k); err != nil {
					return err
				}
				c.state.counts[nClaims]--
				c.wrote = true
			}
			return nil
		})
		if err != nil {
			j.log.Warn("sweep claims", "error", err)
			return
		}
	}
}
