package listing

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

// A JobQuery asks for a page of a project's jobs, newest first.
type JobQuery struct {
	Project  api.ProjectID
	Status   api.JobStatus // any if empty
	Archived *bool         // any if nil
	Outcome  api.Outcome   // any if empty
	Text     string        // in the title, in upper or lower case
	By       string        // who asked for it: JobRow.User
	Linked   bool          // only those with a pull request
	From, To time.Time     // when it was created, half-open; no bound if zero
	Before   api.JobID     // older than this one; a cursor
	Skip     int
	Limit    int // all if zero
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
	body, err := database.EncodeBody(r)
	row := &jobRow{
		ID: r.Job.ID, Project: r.Project, Status: r.Job.Status, Archived: r.Archived, Seq: r.Seq, Body: body,
		Outcome: api.Outcome(database.Column(string(r.Job.Outcome))), AskedBy: database.Column(r.User),
		Title: database.Fold(r.Job.Title), Created: r.Job.CreatedAt.UnixMilli(),
	}
	if r.Job.PRLink != nil {
		row.Link = database.Column(*r.Job.PRLink)
	}
	return row, err
}

// A JobLoader makes the row of a job's stream. It returns false if the stream does not exist or is no job.
type JobLoader func(ctx context.Context, stream string) (api.JobRow, bool, error)

// NewProjector makes the projector of the listing of jobs.
func (s *Store) NewProjector(source Source, load JobLoader, log *slog.Logger) *Projector {
	return s.Keep(jobListing(load), source, log)
}

// jobListing is the copy of all jobs. A row that is there in a newer form stays.
func jobListing(load JobLoader) Projection {
	return Projection{
		Name: JobListing, Title: "the job listing", Kind: "job", Prefix: jobStreamPrefix,
		Table: "jobs", Column: "id", Gap: projectGap,
		Load: func(ctx context.Context, stream string, _ uint64) (any, bool, error) {
			row, ok, err := load(ctx, stream)
			if err != nil || !ok {
				return nil, ok, err
			}
			row.Job.ID = api.JobID(strings.TrimPrefix(stream, jobStreamPrefix))
			r, err := newJobRow(row)
			return r, true, err
		},
		Write: func(ctx context.Context, tx bun.Tx, loaded []any, gone []string, noted *Changes) error {
			noted.All = noted.All || len(gone) > 0
			if len(loaded) > 0 {
				rows := make([]*jobRow, len(loaded))
				for i, r := range loaded {
					rows[i] = r.(*jobRow)
					noted.Of(rows[i].Project)
				}
				_, err := database.Upsert(tx.NewInsert().Model(&rows), "project_id", "status", "archived", "seq", "outcome",
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
func placeJobs(ctx context.Context, db bun.IDB, _ time.Time) (func(*database.DB), error) {
	for after, more := "", true; more; {
		var rows []jobRow
		err := db.NewSelect().Model(&rows).Where("id > ?", after).OrderBy("id", bun.OrderAsc).
			Limit(Batch).Scan(ctx)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			after = string(rows[i].ID)
			var job api.JobRow
			if database.DecodeBody(rows[i].Body, &job, "job") != nil {
				continue
			}
			r, err := newJobRow(job)
			if err != nil {
				return nil, err
			}
			_, err = db.NewUpdate().Model(r).Column("outcome", "asked_by", "title", "created_at").WherePK().Exec(ctx)
			if err != nil {
				return nil, err
			}
		}
		more = len(rows) == Batch
	}
	return nil, nil
}

// likeEscape makes a text that LIKE takes as it is.
var likeEscape = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// Jobs lists a project's jobs. It is a copy of what the journal holds, some milliseconds behind it.
func (s *Store) Jobs(ctx context.Context, q JobQuery) ([]api.JobRow, error) {
	if q.MinPos > 0 {
		if err := s.Await(ctx, JobListing, q.MinPos, false); err != nil {
			return nil, err
		}
	}
	if !database.Askable(string(q.Project)) || !database.Askable(string(q.Before)) || !database.Askable(string(q.Outcome)) || !database.Askable(q.By) {
		return nil, nil
	}
	var rows []jobRow
	sel := s.db.Read.NewSelect().Model(&rows).Column("id", "body").Where("project_id = ?", q.Project).Order("id DESC")
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
	if text := database.Fold(q.Text); text != "" {
		sel = sel.Where(`title LIKE ? ESCAPE '\'`, "%"+likeEscape.Replace(text)+"%")
	}
	if !q.From.IsZero() {
		sel = sel.Where("created_at >= ?", database.CeilMilli(q.From))
	}
	if !q.To.IsZero() {
		sel = sel.Where("created_at < ?", database.CeilMilli(q.To))
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
	err := sel.Scan(ctx)
	return s.decode(rows, err, "list jobs")
}

// decode are the jobs of rows that were read.
func (s *Store) decode(rows []jobRow, err error, doing string) ([]api.JobRow, error) {
	out := make([]api.JobRow, len(rows))
	for i := 0; i < len(rows) && err == nil; i++ {
		err = database.DecodeBody(rows[i].Body, &out[i], "job "+string(rows[i].ID))
	}
	if err != nil {
		return nil, s.db.Fail(doing, err)
	}
	return out, nil
}

// maxAskers are how many who asked for jobs are told.
const maxAskers = 200

// Askers are who asked for a project's jobs: keys, people and automations, by their ids.
func (s *Store) Askers(ctx context.Context, project api.ProjectID) ([]string, error) {
	var out []string
	err := s.db.Read.NewSelect().Model((*jobRow)(nil)).Distinct().Column("asked_by").Where("project_id = ?", project).
		Where("asked_by <> ''").Limit(maxAskers).Scan(ctx, &out)
	slices.Sort(out)
	return out, s.db.Fail("list who asked for jobs", err)
}

// NewestJob is the job that comes first in the listings of all projects; empty if there is none.
func (s *Store) NewestJob(ctx context.Context) (api.JobID, error) {
	var newest sql.NullString
	if err := s.db.Read.NewSelect().Model((*jobRow)(nil)).ColumnExpr("MAX(id)").Scan(ctx, &newest); err != nil {
		return "", s.db.Fail("look for the newest job", err)
	}
	return api.JobID(newest.String), nil
}

// UnfollowedPulls are jobs of a project whose pull request stands on a code host and is not followed yet, oldest first.
func (s *Store) UnfollowedPulls(ctx context.Context, project api.ProjectID, limit int) ([]api.JobRow, error) {
	var rows []jobRow
	followed := s.db.Read.NewSelect().TableExpr("review_pulls AS r").ColumnExpr("1").
		Where("r.project_id = job.project_id").Where("r.link = job.link")
	err := s.db.Read.NewSelect().Model(&rows).Column("id", "body").Where("project_id = ?", project).
		Where("link LIKE 'http%'").Where("NOT EXISTS (?)", followed).Order("id").Limit(int64(limit)).Scan(ctx)
	return s.decode(rows, err, "list pull requests that are not followed")
}
