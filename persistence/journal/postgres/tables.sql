-- The journal's tables, and what a journal does with them in one call each: no lock is ever held by a client that may be
-- stopped. Functions bear the number of their version, so that nodes of two versions work side by side; what a function
-- of a published version does is not changed.

-- The one row that every commit locks: commits of all nodes come one after the other, and positions rise in their order.
CREATE TABLE IF NOT EXISTS journal_head (
	one      boolean PRIMARY KEY DEFAULT true CHECK (one),
	format   int    NOT NULL, -- of these tables
	id       text   NOT NULL, -- of this journal
	position bigint NOT NULL  -- of the last event
) WITH (fillfactor = 10);

-- Which versions of these statements have run here, by their digests.
CREATE TABLE IF NOT EXISTS journal_made (
	tables text PRIMARY KEY
);

-- Apart from the head: whoever writes it does not wait for commits.
CREATE TABLE IF NOT EXISTS journal_state (
	one      boolean PRIMARY KEY DEFAULT true CHECK (one),
	trimmed  bigint NOT NULL, -- the highest position of an event that was removed because a snapshot covers it
	catalog  text   NOT NULL, -- the identity of the catalogue that the journal works with
	revision bigint NOT NULL, -- the last change of it that the journal has heard of
	losses   bigint NOT NULL DEFAULT 0 -- how often nodes have seen that the database had lost commits
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS journal_streams (
	stream  text COLLATE "C" PRIMARY KEY,
	last    bigint   NOT NULL, -- sequence number of the last event
	pending boolean  NOT NULL, -- it calls for work
	shard   smallint NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX IF NOT EXISTS journal_streams_pending ON journal_streams (shard) WHERE pending;

-- A removed stream leaves one row without a type, whose sequence number is its position, negative.
CREATE TABLE IF NOT EXISTS journal_events (
	stream   text COLLATE "C" NOT NULL,
	seq      bigint NOT NULL,
	position bigint NOT NULL,
	type     text COLLATE "C",
	data     bytea,
	PRIMARY KEY (stream, seq)
);

CREATE UNIQUE INDEX IF NOT EXISTS journal_events_position ON journal_events (position);

CREATE TABLE IF NOT EXISTS journal_snapshots (
	stream   text COLLATE "C" PRIMARY KEY,
	seq      bigint NOT NULL, -- of the last event that it covers
	position bigint NOT NULL, -- and the position of that
	state    bytea  NOT NULL
);

CREATE INDEX IF NOT EXISTS journal_snapshots_position ON journal_snapshots (position);

CREATE TABLE IF NOT EXISTS journal_claims (
	key     bytea PRIMARY KEY,
	digest  bytea  NOT NULL,
	owner   text COLLATE "C" NOT NULL,
	ref     text COLLATE "C" NOT NULL,
	expires bigint NOT NULL -- in nanoseconds since 1970
);

CREATE INDEX IF NOT EXISTS journal_claims_expires ON journal_claims (expires);

CREATE TABLE IF NOT EXISTS journal_uses (
	kind  smallint NOT NULL, -- of window
	key   bytea    NOT NULL,
	ends  bigint   NOT NULL, -- when the slot ceases to count, in seconds since 1970
	count int      NOT NULL,
	PRIMARY KEY (kind, key, ends)
) WITH (fillfactor = 70);

CREATE INDEX IF NOT EXISTS journal_uses_ends ON journal_uses (ends);

CREATE TABLE IF NOT EXISTS journal_followers (
	name  text PRIMARY KEY,
	acked bigint NOT NULL
) WITH (fillfactor = 50);

-- The last batch of each process that writes, and what became of it: a batch whose answer was lost is sent again.
CREATE TABLE IF NOT EXISTS journal_writers (
	writer   text PRIMARY KEY,
	seen     timestamptz NOT NULL,
	batch    bigint NOT NULL,
	position bigint NOT NULL, -- of the first event
	statuses smallint[] NOT NULL,
	lasts    bigint[]   NOT NULL
) WITH (fillfactor = 20);

-- Whether a node may write. Its caller holds the lock of the head.
CREATE OR REPLACE FUNCTION journal_fence_1(node text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF node = '' THEN
		RETURN;
	END IF;
	PERFORM FROM cluster_nodes WHERE id = node AND alive;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'node % was given up', node USING ERRCODE = 'DC001';
	END IF;
END $$;

-- Commits a batch of appends. Each is taken or refused by itself; a stream and a claim's key come at most once in a
-- batch. A status is 0: taken, 1: the stream has moved on, 2: the key is claimed, 3: a quota is used up.
CREATE OR REPLACE FUNCTION journal_commit_1(
	node text, writer_id text, batch_number bigint, time_now bigint, seconds_now bigint,
	streams text[], afters bigint[], pendings boolean[], shards smallint[], counts int[],
	claims bytea[], replaces boolean[], digests bytea[], owners text[], refs text[], expiries bigint[], releases bytea[],
	event_appends int[], event_streams text[], event_seqs bigint[], event_types text[], event_data bytea[],
	use_appends int[], use_kinds smallint[], use_keys bytea[], use_ends bigint[], use_limits int[],
	OUT first_position bigint, OUT statuses smallint[], OUT lasts bigint[])
LANGUAGE plpgsql AS $$
DECLARE
	head bigint;
	done record;
	refused int[];
	at int;
	added bigint := 0;
	whole boolean;
	claiming boolean := cardinality(claims) > 0;
BEGIN
	SELECT h.position INTO head FROM journal_head h FOR UPDATE;
	SELECT w.batch, w.position, w.statuses, w.lasts INTO done FROM journal_writers w WHERE w.writer = writer_id;
	IF done.batch = batch_number THEN -- also of a node that was given up since
		first_position := done.position; statuses := done.statuses; lasts := done.lasts;
		RETURN;
	END IF;
	PERFORM journal_fence_1(node);
	IF done.batch IS DISTINCT FROM batch_number - 1 THEN
		RAISE EXCEPTION 'batch % of writer % comes after batch %', batch_number, writer_id, done.batch USING ERRCODE = 'DC002';
	END IF;
	first_position := head + 1;

	IF claiming THEN
		SELECT array_agg(CASE
				WHEN c.key IS NOT NULL THEN 2
				WHEN coalesce(s.last, 0) <> a.after THEN 1
				ELSE 0 END::smallint ORDER BY a.i), array_agg(coalesce(s.last, 0) ORDER BY a.i)
		INTO statuses, lasts
		FROM unnest(streams, afters, claims, replaces) WITH ORDINALITY a(stream, after, claim, replace, i)
		LEFT JOIN journal_streams s ON s.stream = a.stream
		LEFT JOIN journal_claims c ON c.key = a.claim AND NOT a.replace AND c.expires > time_now;
	ELSE
		SELECT array_agg(CASE WHEN coalesce(s.last, 0) <> a.after THEN 1 ELSE 0 END::smallint ORDER BY a.i),
			array_agg(coalesce(s.last, 0) ORDER BY a.i)
		INTO statuses, lasts
		FROM unnest(streams, afters) WITH ORDINALITY a(stream, after, i)
		LEFT JOIN journal_streams s ON s.stream = a.stream;
	END IF;
	statuses := coalesce(statuses, '{}');
	lasts := coalesce(lasts, '{}');

	IF cardinality(use_appends) > 0 THEN
		-- Those that would go over a limit, counted with all before them in the batch. One that is refused for another of
		-- its uses is counted too: the caller sends again what the stored counts leave room for.
		SELECT array_agg(DISTINCT append) INTO refused FROM (
			SELECT append, lim, n + max(CASE WHEN n = 1 THEN (SELECT coalesce(sum(j.count), 0) FROM journal_uses j
				WHERE j.kind = u.kind AND j.key = u.key AND j.ends > seconds_now) END) OVER (PARTITION BY kind, key) AS total
			FROM (
				SELECT append, kind, key, lim, row_number() OVER (PARTITION BY kind, key ORDER BY i) AS n
				FROM unnest(use_appends, use_kinds, use_keys, use_limits) WITH ORDINALITY x(append, kind, key, lim, i)
				WHERE statuses[append] = 0
			) u
		) counted WHERE total > lim;
		IF refused IS NOT NULL THEN
			FOREACH at IN ARRAY refused LOOP
				statuses[at] := 3;
			END LOOP;
		END IF;
		INSERT INTO journal_uses AS j (kind, key, ends, count)
		SELECT kind, key, ends, count(*) FROM unnest(use_appends, use_kinds, use_keys, use_ends) x(append, kind, key, ends)
		WHERE statuses[append] = 0 GROUP BY kind, key, ends
		ON CONFLICT (kind, key, ends) DO UPDATE SET count = j.count + excluded.count;
	END IF;

	INSERT INTO journal_events (stream, seq, position, type, data)
	SELECT e.stream, e.seq, head + row_number() OVER (ORDER BY e.i), e.type, e.data
	FROM unnest(event_appends, event_streams, event_seqs, event_types, event_data)
		WITH ORDINALITY e(append, stream, seq, type, data, i)
	WHERE statuses[e.append] = 0;
	GET DIAGNOSTICS added = ROW_COUNT;

	IF added > 0 THEN
		whole := added = cardinality(event_appends);
		INSERT INTO journal_streams AS s (stream, last, pending, shard)
		SELECT a.stream, a.after + a.n, a.pending, a.shard
		FROM unnest(streams, afters, pendings, shards, counts) WITH ORDINALITY a(stream, after, pending, shard, n, i)
		WHERE whole OR statuses[a.i] = 0
		ON CONFLICT (stream) DO UPDATE SET last = excluded.last, pending = excluded.pending;
		IF claiming THEN
			INSERT INTO journal_claims AS c (key, digest, owner, ref, expires)
			SELECT a.claim, a.digest, a.owner, a.ref, a.expires
			FROM unnest(claims, digests, owners, refs, expiries) WITH ORDINALITY a(claim, digest, owner, ref, expires, i)
			WHERE a.claim IS NOT NULL AND statuses[a.i] = 0
			ON CONFLICT (key) DO UPDATE SET digest = excluded.digest, owner = excluded.owner, ref = excluded.ref,
				expires = excluded.expires
			WHERE (c.digest, c.owner, c.ref, c.expires) IS DISTINCT FROM
				(excluded.digest, excluded.owner, excluded.ref, excluded.expires);
		END IF;
		IF cardinality(releases) > 0 THEN
			DELETE FROM journal_claims c
			USING unnest(releases, streams) WITH ORDINALITY a(key, stream, i)
			WHERE c.key = a.key AND c.owner = a.stream AND statuses[a.i] = 0;
		END IF;
		UPDATE journal_head SET position = head + added;
		PERFORM pg_notify('docent_journal_' || 'journal_head'::regclass::oid, (head + added)::text);
	END IF;
	UPDATE journal_writers w SET batch = batch_number, position = first_position,
		statuses = journal_commit_1.statuses, lasts = journal_commit_1.lasts WHERE w.writer = writer_id;
END $$;

-- Removes a stream with everything of it, and those of the claims that it holds.
CREATE OR REPLACE FUNCTION journal_remove_1(node text, gone text, claims bytea[], OUT head bigint)
LANGUAGE plpgsql AS $$
BEGIN
	SELECT h.position INTO head FROM journal_head h FOR UPDATE;
	PERFORM journal_fence_1(node);
	DELETE FROM journal_claims WHERE key = ANY (claims) AND owner = gone;
	DELETE FROM journal_streams WHERE stream = gone; -- first: a snapshot that is written now holds this row
	IF NOT FOUND THEN
		RETURN;
	END IF;
	DELETE FROM journal_snapshots WHERE stream = gone;
	DELETE FROM journal_events WHERE stream = gone AND seq > 0;
	head := head + 1;
	INSERT INTO journal_events (stream, seq, position) VALUES (gone, -head, head);
	UPDATE journal_head SET position = head;
	PERFORM pg_notify('docent_journal_' || 'journal_head'::regclass::oid, head::text);
END $$;

-- Writes snapshots. One that covers an event which is not there is left out, as is one that says nothing new.
CREATE OR REPLACE FUNCTION journal_snapshots_1(node text, streams text[], seqs bigint[], states bytea[])
RETURNS int LANGUAGE plpgsql AS $$
DECLARE written int;
BEGIN
	PERFORM journal_fence_1(node);
	PERFORM 1 FROM unnest(streams) a(stream) JOIN journal_streams s ON s.stream = a.stream
	ORDER BY s.stream FOR KEY SHARE OF s;
	INSERT INTO journal_snapshots AS old (stream, seq, position, state)
	SELECT a.stream, a.seq, e.position, a.state
	FROM unnest(streams, seqs, states) a(stream, seq, state)
	JOIN journal_events e ON e.stream = a.stream AND e.seq = a.seq
	ORDER BY a.stream
	ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, position = excluded.position, state = excluded.state
	WHERE old.seq < excluded.seq;
	GET DIAGNOSTICS written = ROW_COUNT;
	RETURN written;
END $$;

-- Removes the events of streams that their snapshots cover, and the marks of removed streams, as far as all followers
-- have come.
CREATE OR REPLACE FUNCTION journal_trim_1(streams text[], OUT removed int, OUT low bigint) LANGUAGE plpgsql AS $$
DECLARE highest bigint;
BEGIN
	SELECT coalesce(min(acked), 9223372036854775807) INTO low FROM journal_followers;
	WITH gone AS (
		DELETE FROM journal_events e USING journal_snapshots s
		WHERE s.stream = ANY (streams) AND e.stream = s.stream AND e.seq > 0 AND e.seq <= s.seq AND e.position <= low
		RETURNING e.position
	)
	SELECT count(*), max(position) INTO removed, highest FROM gone;
	IF highest IS NOT NULL THEN
		UPDATE journal_state SET trimmed = highest WHERE trimmed < highest;
	END IF;
END $$;

-- The same for a stretch of the log, and for what ended in it. It says up to where it looked; NULL at the end.
CREATE OR REPLACE FUNCTION journal_sweep_1(from_position bigint, most int, OUT removed int, OUT reached bigint)
LANGUAGE plpgsql AS $$
DECLARE
	low bigint;
	highest bigint;
BEGIN
	SELECT coalesce(min(acked), 9223372036854775807) INTO low FROM journal_followers;
	SELECT max(p.position) INTO reached FROM (
		SELECT position FROM journal_events WHERE position > from_position AND position <= low
		ORDER BY position LIMIT most) p;
	IF reached IS NULL THEN
		removed := 0;
		RETURN;
	END IF;
	WITH covered AS MATERIALIZED ( -- what others are removing, in the order of streams, is not waited for
		SELECT e.stream, e.seq FROM journal_events e
		WHERE e.position > from_position AND e.position <= reached
			AND (e.seq < 0 OR e.seq <= (SELECT s.seq FROM journal_snapshots s WHERE s.stream = e.stream))
		FOR UPDATE OF e SKIP LOCKED
	), gone AS (
		DELETE FROM journal_events e USING covered c WHERE e.stream = c.stream AND e.seq = c.seq
		RETURNING e.position
	)
	SELECT count(*), max(position) INTO removed, highest FROM gone;
	IF highest IS NOT NULL THEN
		UPDATE journal_state SET trimmed = highest WHERE trimmed < highest;
	END IF;
END $$;
