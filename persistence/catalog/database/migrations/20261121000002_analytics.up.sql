-- Times are milliseconds of Unix time: they are compared and counted, never shown by the database.

CREATE TABLE updates (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL,
    status     {{.Text}} NOT NULL,
    body       {{.JSON}} NOT NULL
) {{.Strict}}
--bun:split
-- Who asks for an update while one waits gets that one.
CREATE UNIQUE INDEX updates_queued ON updates (project_id) WHERE status = 'queued'
--bun:split
CREATE INDEX updates_project ON updates (project_id, id)
--bun:split
CREATE INDEX updates_open ON updates (id) WHERE status IN ('queued', 'in_progress')
--bun:split
-- Copies of what the journal holds of threads: questions that have come to their end. "version" is a digest of the row,
-- so that a thread that grows writes only what is new.
CREATE TABLE questions (
    id         {{.Text}} PRIMARY KEY,
    thread_id  {{.Text}} NOT NULL,
    project_id {{.Text}} NOT NULL,
    caller     {{.Text}} NOT NULL,
    channel    {{.Text}} NOT NULL,
    outcome    {{.Text}} NOT NULL,
    replaced   {{.Bool}} NOT NULL,
    asked_at   {{.Int}} NOT NULL,
    rating     {{.Text}} NOT NULL,
    rated_at   {{.Int}} NOT NULL,
    version    {{.Int}} NOT NULL,
    body       {{.JSON}} NOT NULL
) {{.Strict}}
--bun:split
CREATE INDEX questions_thread ON questions (thread_id)
--bun:split
-- Holds all that totals are counted from.
CREATE INDEX questions_asked ON questions (project_id, replaced, asked_at, id, thread_id, caller, channel, outcome, rating)
--bun:split
CREATE INDEX questions_rated ON questions (project_id, rated_at, id) WHERE rating <> ''
--bun:split
-- The pages that rated answers cite.
CREATE TABLE rated_pages (
    question_id {{.Text}} NOT NULL REFERENCES questions (id) ON DELETE CASCADE,
    page        {{.Text}} NOT NULL,
    project_id  {{.Text}} NOT NULL,
    rating      {{.Text}} NOT NULL,
    rated_at    {{.Int}} NOT NULL,
    PRIMARY KEY (question_id, page)
) {{.Strict}}
--bun:split
CREATE INDEX rated_pages_project ON rated_pages (project_id, rated_at, page, rating)
--bun:split
-- Searches are written here alone, some seconds after they were made.
CREATE TABLE searches (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL,
    query      {{.Text}} NOT NULL,
    results    {{.Int}} NOT NULL,
    at         {{.Int}} NOT NULL
) {{.Strict}}
--bun:split
CREATE INDEX searches_at ON searches (project_id, at, query, results)
--bun:split
CREATE INDEX searches_old ON searches (at)
