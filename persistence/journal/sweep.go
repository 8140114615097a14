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
	// claimKeep is how long an expired claim stays on disk, for a clock that jumps forward and comes back.
	claimKeep = 25 * time.Hour
)

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
	j.sweepBucket(nClaims, false, func(k, v []byte) bool {
		claim, err := decodeClaim(k, v)
		return err == nil && claim.Expires.Add(claimKeep).Before(now)
	})
	ended := now.Add(-quota.Keep).Unix()
	j.sweepBucket(nUses, true, func(k, _ []byte) bool { // they stand in the order of their ends
		return len(k) >= 9 && int64(binary.BigEndian.Uint64(k)) < ended
	})
}

// sweepBucket removes the old entries of a bucket, a bounded number in each commit. If the bucket is in order, the
// old ones come first.
func (j *Journal) sweepBucket(counted int, ordered bool, old func(k, v []byte) bool) {
	name := countedBuckets[counted]
	var from []byte
	for more := true; more && !j.closing(); {
		var keys [][]byte
		err := j.view("sweep", func(tx *bbolt.Tx) error {
			c := tx.Bucket(name).Cursor()
			k, v := c.Seek(from)
			for n := 0; k != nil && n < groupSweep; n++ {
				if old(k, v) {
					keys = append(keys, bytes.Clone(k))
				} else if ordered {
					k = nil
					break
				}
				k, v = c.Next()
			}
			more = k != nil
			from = bytes.Clone(k)
			return nil
		})
		if err == nil && len(keys) > 0 {
			err = j.do(func(c *commit) error {
				for _, k := range keys {
					if v := c.buckets[counted].Get(k); v != nil && old(k, v) { // it may have been replaced meanwhile
						if err := c.delete(counted, k); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}
		if err != nil {
			j.log.Warn("sweep "+string(name), "error", err)
			return
		}
	}
}
