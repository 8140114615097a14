-- Columns hold what is asked for; "body" holds the whole resource as JSON, so that a new field needs no migration.
-- Text that is compared or sorted uses the bytes' own order in both databases: IDs sort by time only in that order.

CREATE TABLE organizations (
    id         {{.Text}} PRIMARY KEY,
    name       {{.Text}} NOT NULL,
    created_at {{.Time}} NOT NULL
) {{.Strict}}
--bun:split
CREATE TABLE projects (
    id         {{.Text}} PRIMARY KEY,
    org_id     {{.Text}} NOT NULL REFERENCES organizations (id),
    domain     {{.Text}} NOT NULL UNIQUE,
    body       {{.JSON}} NOT NULL,
    created_at {{.Time}} NOT NULL
) {{.Strict}}
--bun:split
-- IDs name folders: two that differ only in case would meet on some file systems.
CREATE UNIQUE INDEX projects_id_folded ON projects (lower(id))
--bun:split
CREATE TABLE keys (
    id           {{.Text}} PRIMARY KEY,
    hash         {{.Bytes}} NOT NULL UNIQUE,
    org_id       {{.Text}} NOT NULL REFERENCES organizations (id),
    project_id   {{.Text}} REFERENCES projects (id) ON DELETE CASCADE,
    body         {{.JSON}} NOT NULL,
    created_at   {{.Time}} NOT NULL,
    revoked_at   {{.Time}},
    last_used_at {{.Time}}
) {{.Strict}}
--bun:split
CREATE INDEX keys_org ON keys (org_id, id)
--bun:split
CREATE INDEX keys_project ON keys (project_id, id)
--bun:split
-- Copies of what the journal holds: no reference to projects, since a removed project's jobs are still in the journal.
CREATE TABLE jobs (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL,
    status     {{.Text}} NOT NULL,
    archived   {{.Bool}} NOT NULL,
    seq        {{.Int}} NOT NULL,
    body       {{.JSON}} NOT NULL
) {{.Strict}}
--bun:split
CREATE INDEX jobs_project ON jobs (project_id, id)
--bun:split
CREATE INDEX jobs_status ON jobs (project_id, status, id)
--bun:split
CREATE INDEX jobs_archived ON jobs (project_id, archived, id)
--bun:split
CREATE TABLE projections (
    name     {{.Text}} PRIMARY KEY,
    position {{.Int}} NOT NULL
) {{.Strict}}
--bun:split
-- Pull requests of the built-in host. They outlive their project's entry, as its repository does.
CREATE TABLE pulls (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL,
    number     {{.Int}} NOT NULL,
    head       {{.Text}} NOT NULL,
    state      {{.Text}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    created_at {{.Time}} NOT NULL,
    UNIQUE (project_id, number)
) {{.Strict}}
--bun:split
CREATE UNIQUE INDEX pulls_open ON pulls (project_id, head) WHERE state = 'open'
--bun:split
CREATE INDEX pulls_head ON pulls (project_id, head, number)
--bun:split
CREATE TABLE counters (
    name  {{.Text}} PRIMARY KEY,
    value {{.Int}} NOT NULL
) {{.Strict}}
--bun:split
CREATE TABLE settings (
    name  {{.Text}} PRIMARY KEY,
    value {{.Bytes}} NOT NULL
) {{.Strict}}
