-- How often agents read a page as Markdown on a day (its start, UTC), by the way they came. For people: without checksums.
CREATE TABLE agent_reads (
    project_id {{.Text}} NOT NULL,
    at         {{.Int}} NOT NULL,
    page       {{.Text}} NOT NULL,
    way        {{.Text}} NOT NULL,
    reads      {{.Int}} NOT NULL,
    PRIMARY KEY (project_id, at, page, way)
) {{.Strict}}
--bun:split
CREATE INDEX agent_reads_old ON agent_reads (at)
