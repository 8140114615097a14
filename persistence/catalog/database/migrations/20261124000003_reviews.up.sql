-- Pull requests on code hosts whose comments are followed. "next_at" is in milliseconds of Unix time: 0 for those that are
-- over, and 1 for those of which a code host has said that there is news.
CREATE TABLE review_pulls (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    number     {{.Int}} NOT NULL,
    link       {{.Text}} NOT NULL,
    state      {{.Text}} NOT NULL,
    next_at    {{.Int}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX review_pulls_due ON review_pulls (project_id, next_at) WHERE next_at > 0
--bun:split
CREATE INDEX review_pulls_link ON review_pulls (project_id, link)
--bun:split
-- Instructions that comments are, on their way to the job and back. "ask_key" names the comments: there is one for each.
CREATE TABLE review_asks (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    number     {{.Int}} NOT NULL,
    ask_key    {{.Text}} NOT NULL UNIQUE,
    state      {{.Text}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX review_asks_open ON review_asks (id) WHERE state <> 'answered'
--bun:split
CREATE INDEX review_asks_pull ON review_asks (project_id, number, id)
