-- What pages of conversations are made of. "num" is a question's place in time: milliseconds of Unix time, and 20 bits of
-- its id; the program computes those of questions that are there already. "first_text" is how many milliseconds passed
-- before the first text of the answer was there; 0 where that is not known.
ALTER TABLE questions ADD COLUMN num {{.Int}} NOT NULL DEFAULT 0
--bun:split
ALTER TABLE questions ADD COLUMN first_text {{.Int}} NOT NULL DEFAULT 0
--bun:split
-- 1 where the documentation has no clear answer, and the sections that come closest were shown.
ALTER TABLE questions ADD COLUMN in_doubt {{.Int}} NOT NULL DEFAULT 0
--bun:split
CREATE INDEX questions_num ON questions (project_id, num, replaced, thread_id)
--bun:split
DROP INDEX questions_thread
--bun:split
CREATE INDEX questions_thread ON questions (thread_id, replaced, num, outcome, in_doubt, rating)
--bun:split
-- Holds all that totals and days are counted from.
DROP INDEX questions_asked
--bun:split
CREATE INDEX questions_asked ON questions (project_id, replaced, asked_at, id, thread_id, caller, channel, outcome,
    rating, in_doubt, first_text)
--bun:split
-- The pages that answers cite; answers that were replaced are left out.
CREATE TABLE cited_pages (
    question_id {{.Text}} NOT NULL REFERENCES questions (id) ON DELETE CASCADE,
    page        {{.Text}} NOT NULL,
    project_id  {{.Text}} NOT NULL,
    asked_at    {{.Int}} NOT NULL,
    PRIMARY KEY (question_id, page)
) {{.Strict}}{{if .Strict}}, WITHOUT ROWID{{end}}
--bun:split
CREATE INDEX cited_pages_project ON cited_pages (project_id, asked_at, page)
--bun:split
-- The words of questions and answers, and what else conversations are filtered by, in the database's own text index. It
-- is written some time after the questions are: text_queue has the numbers of those that are new, changed or gone.
{{if .Strict}}
CREATE VIRTUAL TABLE question_texts USING fts5 (words, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2")
{{else}}
CREATE TABLE question_texts (
    num   BIGINT PRIMARY KEY,
    words TSVECTOR NOT NULL
)
--bun:split
CREATE INDEX question_texts_words ON question_texts USING GIN (words)
{{end}}
--bun:split
CREATE TABLE text_queue (
    num {{.Int}} PRIMARY KEY
) {{.Strict}}
--bun:split
ALTER TABLE jobs ADD COLUMN outcome {{.Text}} NOT NULL DEFAULT ''
--bun:split
-- The key, the person or the automation that asked for it.
ALTER TABLE jobs ADD COLUMN asked_by {{.Text}} NOT NULL DEFAULT ''
--bun:split
ALTER TABLE jobs ADD COLUMN title {{.Text}} NOT NULL DEFAULT ''
--bun:split
ALTER TABLE jobs ADD COLUMN created_at {{.Int}} NOT NULL DEFAULT 0
--bun:split
CREATE INDEX jobs_listed ON jobs (project_id, id, status, outcome, archived, asked_by, created_at, title)
