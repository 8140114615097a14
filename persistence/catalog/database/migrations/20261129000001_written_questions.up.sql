-- Questions that a language model wrote for sections of the documentation, by the hash of what a section says. A day is
-- 20060102, UTC.
CREATE TABLE written_questions (
    id       {{.Text}} PRIMARY KEY,
    used_on  {{.Int}} NOT NULL,
    body     {{.JSON}} NOT NULL,
    checksum {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
--bun:split
CREATE INDEX written_questions_used ON written_questions (used_on)
--bun:split
-- How the questions of each index stand, and what they cost; with the id *, what all of them used on a day.
CREATE TABLE written_states (
    id       {{.Text}} PRIMARY KEY,
    body     {{.JSON}} NOT NULL,
    checksum {{.Int}} NOT NULL DEFAULT 0
) {{.Strict}}
