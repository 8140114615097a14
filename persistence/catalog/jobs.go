package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

// A JobQuery asks for a page of a project's jobs, newest first.
type JobQuery struct {
	Project  api.ProjectID
	Status   api.JobStatus // any where empty
	Archived *bool         // any where nil
	Outcome  api.Outcome   // any where empty
	Text     string        // in the title, in upper or lower case
	By       string        // who asked for it: JobRow.User
	Linked   bool          // only those with a pull request
	From, To time.Time     // when it was made, half-open; no bound where zero
	Before   api.JobID     // older than this one; a cursor
	Skip     int
	Limit    int // all where zero
	// MinPos waits, for a short time, until the listing reflects the journal up to this position: so a caller finds the
	// job that it has just created. Newest waits for all that the journal holds.
	MinPos uint64
}

// Newest is the position of whatever the journal holds last when the question is asked.
const Newest uint64 = math.MaxUint64

// listingWait is how long a listing waits for its position before it shows what is there.
const listingWait = 2 * time.Second

type jobRow struct {
	bun.BaseModel `bun:"table:jobs,alias:job"`

	ID       api.JobID       `bun:"id,pk"`
	Project  api.ProjectID   `bun:"project_id"`
	Status   api.JobStatus   `bun:"status"`
	Archived bool            `bun:"archived"`
	Seq      uint64          `bun:"seq"`
	Outcome  api.Outcome     `bun:"outcome"`
	AskedBy  string          `bun:"asked_by"`
	Title    string          `bun:"title"` // folded, for finding
	Created  int64           `bun:"created_at"`
	Link     string          `bun:"link"`
	Body     json.RawMessage `bun:"body"`
}

func newJobRow(r api.JobRow) (*jobRow, error) {
	body, err := encodeBody(r)
	row := &jobRow{
		ID: r.Job.ID, Project: r.Project, Status: r.Job.Status, Archived: r.Archived, Seq: r.Seq, Body: body,
		Outcome: api.Outcome(column(string(r.Job.Outcome))), AskedBy: column(r.User),
		Title: foldQuery(r.Job.Title), Created: r.Job.CreatedAt.UnixMilli(),
	}
	if r.Job.PRLink != nil {
		row.Link = column(*r.Job.PRLink)
	}
	return row, err
}

// jobListing is the copy of all jobs. A row that is there in a newer form stays.
func jobListing(load JobLoader) projection {
	return projection{
		name: JobListing, title: "the job listing", kind: "job", prefix: jobStreamPrefix,
		table: "jobs", column: "id", gap: projectGap,
		load: func(ctx context.Context, stream string, _ uint64) (any, bool, error) {
			row, ok, err := load(ctx, stream)
			if err != nil || !ok {
				return nil, ok, err
			}
			row.Job.ID = api.JobID(strings.TrimPrefix(stream, jobStreamPrefix))
			r, err := newJobRow(row)
			return r, true, err
		},
		write: func(ctx context.Context, tx bun.Tx, loaded []any, gone []string, noted *changes) error {
			noted.all = noted.all || len(gone) > 0
			if len(loaded) > 0 {
				rows := make([]*jobRow, len(loaded))
				for i, r := range loaded {
					rows[i] = r.(*jobRow)
					noted.of(rows[i].Project)
				}
				_, err := upsert(tx.NewInsert().Model(&rows), "project_id", "status", "archived", "seq", "outcome",
					"asked_by", "title", "created_at", "link", "body").
					Where("job.seq < EXCLUDED.seq").Exec(ctx)
				if err != nil {
					return err
				}
			}
			if len(gone) > 0 {
				_, err := tx.NewDelete().Model((*jobRow)(nil)).Where("id IN ?", bun.Tuple(gone)).Exec(ctx)
				return err
			}
			return nil
		},
	}
}

// placeJobs gives the jobs that are stored what the migration of conversations brings.
func placeJobs(ctx context.Context, db bun.IDB) error {
	for after, more := "", true; more; {
		var rows []jobRow
		err := db.NewSelect().Model(&rows).Where("id > ?", after).OrderBy("id", bun.OrderAsc).
			Limit(projectBatch).Scan(ctx)
		if err != nil {
			return err
		}
		for i := range rows {
			after = string(rows[i].ID)
			var job api.JobRow
			if decodeBody(rows[i].Body, &job, "job") != nil {
				continue
			}
			r, err := newJobRow(job)
			if err != nil {
				return err
			}
			_, err = db.NewUpdate().Model(r).Column("outcome", "asked_by", "title", "created_at").WherePK().Exec(ctx)
			if err != nil {
				return err
			}
		}
		more = len(rows) == projectBatch
	}
	return nil
}

// likeEscape makes a text that LIKE takes as it is.
var likeEscape = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// Jobs lists a project's jobs. It is a copy of what the journal holds, some milliseconds behind it.
func (c *Catalog) Jobs(ctx context.Context, q JobQuery) ([]api.JobRow, error) {
	if p := c.projector.Load(); p != nil && q.MinPos > 0 {
		if err := p.await(ctx, q.MinPos); err != nil {
			return nil, err
		}
	}
	if !askable(string(q.Project)) || !askable(string(q.Before)) || !askable(string(q.Outcome)) || !askable(q.By) {
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
	if q.Outcome != "" {
		sel = sel.Where("outcome = ?", q.Outcome)
	}
	if q.By != "" {
		sel = sel.Where("asked_by = ?", q.By)
	}
	if text := foldQuery(q.Text); text != "" {
		sel = sel.Where(`title LIKE ? ESCAPE '\'`, "%"+likeEscape.Replace(text)+"%")
	}
	if !q.From.IsZero() {
		sel = sel.Where("created_at >= ?", ceilMilli(q.From))
	}
	if !q.To.IsZero() {
		sel = sel.Where("created_at < ?", ceilMilli(q.To))
	}
	if q.Linked {
		sel = sel.Where("link <> ''")
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

// maxAskers are how many who asked for jobs are told.
const maxAskers = 200

// Askers are who asked for a project's jobs: keys, people and automations, by their ids.
func (c *Catalog) Askers(ctx context.Context, project api.ProjectID) ([]string, error) {
	var out []string
	err := c.read.NewSelect().Model((*jobRow)(nil)).Distinct().Column("asked_by").Where("project_id = ?", project).
		Where("asked_by <> ''").Limit(maxAskers).Scan(ctx, &out)
	slices.Sort(out)
	return out, c.fail("list who asked for jobs", err)
}

// NewestJob is the job that comes first in the listings of all projects; empty where there is none.
func (c *Catalog) NewestJob(ctx context.Context) (api.JobID, error) {
	var newest sql.NullString
	if err := c.read.NewSelect().Model((*jobRow)(nil)).ColumnExpr("MAX(id)").Scan(ctx, &newest); err != nil {
		return "", c.fail("look for the newest job", err)
	}
	return api.JobID(newest.String), nil
}
