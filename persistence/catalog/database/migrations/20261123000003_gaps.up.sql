-- The questions that topics are made of. The columns hold what tells whether a question that was read is still the same.
CREATE INDEX IF NOT EXISTS questions_gaps ON questions (project_id, asked_at, id, version, outcome, rating, replaced)
    WHERE NOT replaced AND (outcome = 'unanswered' OR rating = 'down')
--bun:split
-- Topics that somebody acted on.
CREATE TABLE gaps (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    state      {{.Text}} NOT NULL,
    anchor     {{.Text}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0,
    UNIQUE (project_id, anchor)
) {{.Strict}}
--bun:split
CREATE TABLE report_hooks (
    project_id {{.Text}} PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
-- A delivery's id stands for what is delivered: a second one for the same week cannot be stored. Times are milliseconds of
-- Unix time.
CREATE TABLE report_deliveries (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    status     {{.Text}} NOT NULL,
    next_at    {{.Int}} NOT NULL,
    created_at {{.Int}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX report_deliveries_due ON report_deliveries (next_at) WHERE status = 'pending'
--bun:split
CREATE INDEX report_deliveries_project ON report_deliveries (project_id, created_at)
