CREATE TABLE automations (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name       {{.Text}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    UNIQUE (project_id, name)
) {{.Strict}}
--bun:split
-- A key stands for what a run is due for: a second run for it cannot be stored. Times are milliseconds of Unix time.
CREATE TABLE automation_runs (
    key           {{.Text}} PRIMARY KEY,
    automation_id {{.Text}} NOT NULL REFERENCES automations (id) ON DELETE CASCADE,
    at            {{.Int}} NOT NULL,
    status        {{.Text}} NOT NULL,
    body          {{.JSON}} NOT NULL
) {{.Strict}}
--bun:split
CREATE INDEX automation_runs_at ON automation_runs (automation_id, at)
--bun:split
CREATE INDEX automation_runs_open ON automation_runs (at) WHERE status = 'accepted'
