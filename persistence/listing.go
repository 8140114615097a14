package persistence

import (
	"context"
	"encoding/json"
	"math"

	"docent/api"

	"github.com/uptrace/bun"
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

type jobRow struct {
	bun.BaseModel `bun:"table:jobs"`

	ID       api.JobID       `bun:"id,pk"`
	Project  api.ProjectID   `bun:"project_id"`
	Status   api.JobStatus   `bun:"status"`
	Archived bool            `bun:"archived"`
	Seq      uint64          `bun:"seq"`
	Body     json.RawMessage `bun:"body"`
}

// Jobs lists a project's jobs. It is a copy of what the journal holds, some milliseconds behind it.
func (c *Catalog) Jobs(ctx context.Context, q JobQuery) ([]api.JobRow, error) {
	if !askable(string(q.Project)) || !askable(string(q.Before)) {
		return nil, nil
	}
	var rows []jobRow
	sel := c.read.NewSelect().Model(&rows).Column("id", "body").Where("project_id = ?", q.Project).Order("id DESC")
	if q.Status != "" {
		sel = sel.Where("status = ?", q.Status)
	}
	if q.Archived != nil {
		sel = sel.Where("archived = ?", *q.Archived)
	}
	if q.Before != "" {
		sel = sel.Where("id < ?", q.Before)
	}
	if q.Limit > 0 {
		sel = sel.Limit(int64(q.Limit))
	}
	if q.Skip > 0 {
		sel = sel.Offset(int64(q.Skip))
		if q.Limit <= 0 {
			sel = sel.Limit(math.MaxInt32) // SQLite has no offset without a limit
		}
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, c.fail("list jobs", err)
	}
	out := make([]api.JobRow, len(rows))
	for i := range rows {
		if err := decodeBody(rows[i].Body, &out[i], "job "+string(rows[i].ID)); err != nil {
			return nil, c.fail("list jobs", err)
		}
	}
	return out, nil
}
