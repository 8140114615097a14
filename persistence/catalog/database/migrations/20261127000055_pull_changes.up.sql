-- A digest of what a pull request changes, so that an equal one is found without looking at the others. It is empty where
-- nobody has computed it yet: those of before it was kept get it when a publication first looks for an equal one.
ALTER TABLE pulls ADD COLUMN change_digest {{.Text}} NOT NULL DEFAULT ''
--bun:split
CREATE INDEX pulls_change ON pulls (project_id, change_digest, number) WHERE state = 'open'
