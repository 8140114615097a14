package journal

import (
	"time"

	"go.etcd.io/bbolt"
)

// claimKeep is how long an expired claim stays on disk, for a clock that jumps forward and comes back.
const claimKeep = 25 * time.Hour

// Claim finds who holds an idempotency key at now. A claim that expired is not found.
func (j *Journal) Claim(key string, now time.Time) (Claim, bool, error) {
	var c Claim
	var found bool
	err := j.view("look up a claim", func(tx *bbolt.Tx) error {
		v := tx.Bucket(bucketClaims).Get([]byte(key))
		if v == nil {
			return j.absent(bucketClaims, key)
		}
		var err error
		if c, err = decodeClaim([]byte(key), v); err != nil {
			return j.damaged("claim", c.Owner, 0, err)
		}
		found = c.Expires.After(now)
		return nil
	})
	if err != nil || !found {
		return Claim{}, false, err
	}
	return c, true, nil
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
