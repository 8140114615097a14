-- Times are milliseconds of Unix time, 0 where there is none: they are compared, never shown by the database. Of tokens only
-- the SHA-256 is kept.

CREATE TABLE people (
    id          {{.Text}} PRIMARY KEY,
    email       {{.Text}} NOT NULL UNIQUE,
    issuer      {{.Text}},
    subject     {{.Text}},
    password    {{.Text}} NOT NULL,
    body        {{.JSON}} NOT NULL,
    created_at  {{.Int}} NOT NULL,
    disabled_at {{.Int}} NOT NULL,
    seen_at     {{.Int}} NOT NULL,
    checksum    {{.Int}} NOT NULL DEFAULT 0,
    UNIQUE (issuer, subject)
) {{.Strict}}
--bun:split
CREATE TABLE memberships (
    id         {{.Text}} PRIMARY KEY,
    person_id  {{.Text}} NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    org_id     {{.Text}} NOT NULL REFERENCES organizations (id),
    role       {{.Text}} NOT NULL,
    created_at {{.Int}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0,
    UNIQUE (org_id, person_id)
) {{.Strict}}
--bun:split
CREATE INDEX memberships_person ON memberships (person_id)
--bun:split
-- "old_hash" is that of the token before the last one: requests that were on their way when it was replaced are let in.
CREATE TABLE sessions (
    id         {{.Text}} PRIMARY KEY,
    hash       {{.Bytes}} NOT NULL UNIQUE,
    old_hash   {{.Bytes}},
    renewed_at {{.Int}} NOT NULL,
    person_id  {{.Text}} REFERENCES people (id) ON DELETE CASCADE,
    key_hash   {{.Bytes}},
    body       {{.JSON}} NOT NULL,
    created_at {{.Int}} NOT NULL,
    expires_at {{.Int}} NOT NULL,
    ended_at   {{.Int}} NOT NULL,
    seen_at    {{.Int}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX sessions_old_hash ON sessions (old_hash)
--bun:split
CREATE INDEX sessions_person ON sessions (person_id, id)
--bun:split
CREATE INDEX sessions_key ON sessions (key_hash, id)
--bun:split
CREATE INDEX sessions_expires ON sessions (expires_at)
--bun:split
CREATE TABLE invitations (
    id         {{.Text}} PRIMARY KEY,
    hash       {{.Bytes}} NOT NULL UNIQUE,
    org_id     {{.Text}} NOT NULL REFERENCES organizations (id),
    body       {{.JSON}} NOT NULL,
    expires_at {{.Int}} NOT NULL,
    ended_at   {{.Int}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX invitations_org ON invitations (org_id, id)
--bun:split
CREATE TABLE links (
    id         {{.Text}} PRIMARY KEY,
    hash       {{.Bytes}} NOT NULL UNIQUE,
    person_id  {{.Text}} REFERENCES people (id) ON DELETE CASCADE,
    created_at {{.Int}} NOT NULL,
    expires_at {{.Int}} NOT NULL,
    used_at    {{.Int}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
-- Who did what. Rows are only added; they outlive the people and projects that they name.
CREATE TABLE audit (
    id         {{.Text}} PRIMARY KEY,
    org_id     {{.Text}} NOT NULL,
    project_id {{.Text}} NOT NULL,
    who_id     {{.Text}} NOT NULL,
    action     {{.Text}} NOT NULL,
    at         {{.Int}} NOT NULL,
    body       {{.JSON}} NOT NULL,
    checksum   {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX audit_org ON audit (org_id, id)
--bun:split
CREATE INDEX audit_who ON audit (org_id, who_id, id)
--bun:split
CREATE INDEX audit_action ON audit (org_id, action, id)
--bun:split
CREATE INDEX audit_project ON audit (org_id, project_id, id)
