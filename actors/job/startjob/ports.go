package startjob

import (
	"time"

	"docent/persistence/journal"
	"docent/persistence/quota"
)

// Claims looks up idempotency keys.
type Claims interface {
	Claim(key string, now time.Time) (journal.Claim, bool, error)
}

// Quotas counts uses: all of them are taken, or none and the error is an *api.LimitError.
type Quotas interface {
	Reserve(now time.Time, uses []quota.Use) error
	Release(now time.Time, uses []quota.Use)
}

// Models gives the name under which a job keeps a model; an unknown one is an api.InvalidError.
type Models interface {
	Resolve(name string) (string, error)
}
