-- Questions are found by their numbers alone when their words are written.
CREATE INDEX questions_number ON questions (num)
