-- The state that a pull request's job was told of. Those of before jobs listened count as told.
ALTER TABLE pulls ADD COLUMN told {{.Text}} NOT NULL DEFAULT 'open'
--bun:split
UPDATE pulls SET told = state
--bun:split
CREATE INDEX pulls_untold ON pulls (id) WHERE told <> state
