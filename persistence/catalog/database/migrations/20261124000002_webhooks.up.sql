CREATE TABLE webhooks (
    id         {{.Text}} PRIMARY KEY,
    project_id {{.Text}} NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX webhooks_project ON webhooks (project_id, id)
--bun:split
-- How far a webhook's receiver has come: "position" is that of the last event that is done with.
CREATE TABLE webhook_states (
    webhook_id {{.Text}} PRIMARY KEY REFERENCES webhooks (id) ON DELETE CASCADE,
    position   {{.Int}} NOT NULL,
    version    {{.Int}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
-- Events as they are sent, made from the journal: "position" is the journal's. Times are milliseconds of Unix time.
CREATE TABLE webhook_events (
    id         {{.Text}} PRIMARY KEY,
    position   {{.Int}} NOT NULL UNIQUE,
    project_id {{.Text}} NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    kind       {{.Text}} NOT NULL,
    stream     {{.Text}} NOT NULL,
    at         {{.Int}} NOT NULL,
    payload    {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX webhook_events_next ON webhook_events (project_id, kind, position)
--bun:split
CREATE INDEX webhook_events_stream ON webhook_events (stream)
--bun:split
CREATE TABLE webhook_deliveries (
    id         {{.Text}} PRIMARY KEY,
    webhook_id {{.Text}} NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    at         {{.Int}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook_id, at)
