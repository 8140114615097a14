-- Comments on lines of pull requests. "message" names the follow-up that they went to the job with.
CREATE TABLE comments (
    id         {{.Text}} PRIMARY KEY,
    pull_id    {{.Text}} NOT NULL,
    author_id  {{.Text}} NOT NULL,
    state      {{.Text}} NOT NULL,
    message    {{.Text}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    created_at {{.Int}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX comments_pull ON comments (pull_id, id)
--bun:split
-- Where a job's pull request is; empty where it has none.
ALTER TABLE jobs ADD COLUMN link {{.Text}} NOT NULL DEFAULT ''
--bun:split
UPDATE jobs SET link = COALESCE(body -> 'Job' ->> 'prLink', '')
--bun:split
CREATE INDEX jobs_link ON jobs (project_id, id) WHERE link <> ''
--bun:split
CREATE INDEX pulls_state ON pulls (project_id, state, number)
