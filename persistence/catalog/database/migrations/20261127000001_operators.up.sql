-- Who is an operator stands in the body of a person, and the program makes the first ones: people.go. Sessions that began
-- with the operator's one-time links are listed.
CREATE INDEX sessions_links ON sessions (id) WHERE person_id IS NULL AND key_hash IS NULL
