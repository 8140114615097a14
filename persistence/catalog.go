package persistence

import (
	"docent/api"
)

// A JobQuery asks for a page of a project's jobs, newest first.
type JobQuery struct {
	Project  api.ProjectID
	Status   api.JobStatus // any where empty
	Archived *bool         // any where nil
	Before   api.JobID     // older than this one; a cursor
	Skip     int
	Limit    int // all where zero
	// MinPos waits, for a short time, until the listing reflects the journal up to this position: who has created a
	// job finds it.
	MinPos uint64
}
