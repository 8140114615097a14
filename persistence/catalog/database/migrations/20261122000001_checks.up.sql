-- Which stores belong together, and how far each has come. "position" is, of the catalogue, the number of its last change of
-- what stands nowhere else, and of the journal, the last position that the catalogue has seen.
CREATE TABLE stores (
    name     {{.Text}} PRIMARY KEY,
    id       {{.Text}} NOT NULL,
    position {{.Int}} NOT NULL
) {{.Strict}}
--bun:split
-- The checksums of rows that stand nowhere else. Those of rows that are there already are computed by the program.
ALTER TABLE organizations ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE projects ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE keys ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE pulls ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE counters ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE settings ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE updates ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE automations ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE automation_runs ADD COLUMN checksum {{.Int}} NOT NULL DEFAULT 0
