-- The tables of a cluster and what its nodes do with them. Each step is one call of a function: no lock is ever held by
-- a client that may be stopped. Functions bear the number of their version, so that nodes of two versions work side by
-- side; what a function of a published version does is not changed.

CREATE TABLE IF NOT EXISTS cluster_state (
	one    boolean PRIMARY KEY DEFAULT true CHECK (one),
	format int    NOT NULL, -- of these tables
	shards int    NOT NULL,
	epoch  bigint NOT NULL  -- rises with each change of nodes and shards
);

-- A row for each life of a node. Rows stay: whoever was given up is known for ever.
CREATE TABLE IF NOT EXISTS cluster_nodes (
	id      text PRIMARY KEY,
	number  int GENERATED ALWAYS AS IDENTITY UNIQUE, -- of its advisory lock
	name    text NOT NULL,
	address text NOT NULL,
	version text NOT NULL,
	keys    text[] NOT NULL, -- public ones that it knows nodes by, its own first
	started timestamptz NOT NULL DEFAULT now(),
	alive   boolean NOT NULL DEFAULT true, -- the fence: who is not alive appends nothing
	ready   boolean NOT NULL DEFAULT false, -- takes shards
	leaving boolean NOT NULL DEFAULT false, -- takes no more
	"left"  boolean NOT NULL DEFAULT false, -- ended by itself
	ended   timestamptz,
	reason  text
);

CREATE INDEX IF NOT EXISTS cluster_nodes_alive ON cluster_nodes (number) WHERE alive;

-- Apart from the nodes: whoever reads the fence never waits for a beat.
CREATE TABLE IF NOT EXISTS cluster_beats (
	node    text PRIMARY KEY,
	counter bigint NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE IF NOT EXISTS cluster_shards (
	shard int PRIMARY KEY,
	node  text, -- that runs it
	next  text  -- that it is to be handed to
);

-- What each node has found of the others and of itself: which it reaches at their addresses, with '' for those and else with
-- why not; and why it is isolated, where it is. A node of a version that does not look has no row.
CREATE TABLE IF NOT EXISTS cluster_reach (
	node     text PRIMARY KEY,
	sees     jsonb NOT NULL, -- by the nodes' ids
	isolated text NOT NULL
);

CREATE OR REPLACE FUNCTION cluster_change_1() RETURNS void LANGUAGE plpgsql AS $$
DECLARE now_at bigint;
BEGIN
	UPDATE cluster_state SET epoch = epoch + 1 RETURNING epoch INTO now_at;
	PERFORM pg_notify('docent_cluster_' || 'cluster_nodes'::regclass::oid, now_at::text);
END $$;

-- The advisory locks of a cluster have the id of its table as their first key: clusters in two schemas do not meet.
CREATE OR REPLACE FUNCTION cluster_lock_1(at int) RETURNS boolean LANGUAGE sql AS $$
	SELECT pg_try_advisory_lock('cluster_nodes'::regclass::oid::bigint::bit(32)::int, at)
$$;

-- Who has joined, or who stands in the way: a node without an address is alone, and each node knows the key of each.
CREATE OR REPLACE FUNCTION cluster_join_1(me text, my_name text, my_address text, my_version text, my_keys text[])
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	others jsonb;
	my_number int;
BEGIN
	PERFORM 1 FROM cluster_state FOR UPDATE;
	SELECT jsonb_agg(jsonb_build_object('id', id, 'name', name, 'address', address) ORDER BY number) INTO others
	FROM cluster_nodes WHERE alive AND id <> me
		AND (my_address = '' OR address = '' OR NOT (keys[1] = ANY (my_keys) AND my_keys[1] = ANY (keys)));
	IF others IS NOT NULL THEN
		RETURN jsonb_build_object('others', others);
	END IF;
	INSERT INTO cluster_nodes (id, name, address, version, keys) VALUES (me, my_name, my_address, my_version, my_keys)
	RETURNING number INTO my_number;
	INSERT INTO cluster_beats (node, counter) VALUES (me, 0);
	PERFORM cluster_lock_1(my_number);
	PERFORM cluster_change_1();
	RETURN jsonb_build_object('number', my_number);
END $$;

-- The same, and a name or an address that another node has stands in the way as well.
CREATE OR REPLACE FUNCTION cluster_join_2(me text, my_name text, my_address text, my_version text, my_keys text[])
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE others jsonb;
BEGIN
	PERFORM 1 FROM cluster_state FOR UPDATE;
	SELECT jsonb_agg(jsonb_build_object('id', id, 'name', name, 'address', address) ORDER BY number) INTO others
	FROM cluster_nodes WHERE alive AND id <> me AND (name = my_name OR address = my_address AND address <> '');
	IF others IS NOT NULL THEN
		RETURN jsonb_build_object('others', others);
	END IF;
	RETURN cluster_join_1(me, my_name, my_address, my_version, my_keys);
END $$;

-- One beat, and all that there is to see. The shards are left out where the caller knows them.
CREATE OR REPLACE FUNCTION cluster_beat_1(me text, known bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE seen jsonb;
BEGIN
	-- A beat that a crash of the server takes back is harmless: others look for a counter that changes.
	PERFORM set_config('synchronous_commit', 'off', true);
	UPDATE cluster_beats SET counter = counter + 1 WHERE node = me;
	WITH held AS MATERIALIZED (
		SELECT objid::bigint AS number, pid FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = 'cluster_nodes'::regclass::oid
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	)
	SELECT jsonb_build_object(
		'epoch', s.epoch,
		'known', EXISTS (SELECT FROM cluster_nodes WHERE id = me),
		'reason', (SELECT reason FROM cluster_nodes WHERE id = me AND NOT alive),
		'alive', EXISTS (SELECT FROM cluster_nodes WHERE id = me AND alive),
		'held', EXISTS (SELECT FROM cluster_nodes n JOIN held USING (number) WHERE n.id = me AND pid = pg_backend_pid()),
		'nodes', COALESCE((
			SELECT jsonb_agg(jsonb_build_object('id', n.id, 'name', n.name, 'address', n.address, 'version', n.version,
				'started', n.started, 'ready', n.ready, 'leaving', n.leaving, 'counter', b.counter,
				'locked', EXISTS (SELECT FROM held WHERE held.number = n.number)) ORDER BY n.number)
			FROM cluster_nodes n JOIN cluster_beats b ON b.node = n.id WHERE n.alive), '[]'),
		'shards', CASE WHEN s.epoch <> known THEN (
			SELECT jsonb_agg(jsonb_build_array(COALESCE(node, ''), COALESCE(next, '')) ORDER BY shard)
			FROM cluster_shards) END)
	INTO seen FROM cluster_state s;
	RETURN seen;
END $$;

-- The same, and what the nodes have found of each other.
CREATE OR REPLACE FUNCTION cluster_beat_2(me text, known bigint) RETURNS jsonb LANGUAGE sql AS $$
	SELECT cluster_beat_1(me, known) || jsonb_build_object('reach', COALESCE((
		SELECT jsonb_object_agg(r.node, jsonb_build_object('sees', r.sees, 'isolated', r.isolated))
		FROM cluster_reach r JOIN cluster_nodes n ON n.id = r.node WHERE n.alive), '{}'))
$$;

-- Writes down what a node has found of the others.
CREATE OR REPLACE FUNCTION cluster_reach_1(me text, my_sees jsonb, my_isolated text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM cluster_state FOR UPDATE;
	DELETE FROM cluster_reach r WHERE NOT EXISTS (SELECT FROM cluster_nodes n WHERE n.id = r.node AND n.alive);
	INSERT INTO cluster_reach SELECT me, my_sees, my_isolated WHERE EXISTS (SELECT FROM cluster_nodes WHERE id = me AND alive)
	ON CONFLICT (node) DO UPDATE SET sees = my_sees, isolated = my_isolated;
	PERFORM cluster_change_1();
END $$;

-- Takes the lock of a node that comes back over a new connection; what is left of its old one is ended.
CREATE OR REPLACE FUNCTION cluster_return_1(me text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE at int;
BEGIN
	SELECT number INTO at FROM cluster_nodes WHERE id = me AND alive;
	IF at IS NULL OR cluster_lock_1(at) THEN
		RETURN true;
	END IF;
	PERFORM pg_terminate_backend(pid) FROM pg_locks
	WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = 'cluster_nodes'::regclass::oid
		AND objid = at::oid AND pid <> pg_backend_pid()
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
	RETURN false;
END $$;

-- Ends the connections of a node, and says how many there were.
CREATE OR REPLACE FUNCTION cluster_terminate_1(node_id text) RETURNS int LANGUAGE sql AS $$
	SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity
	WHERE datname = current_database() AND usename = current_user AND application_name = 'docent ' || node_id
		AND pid <> pg_backend_pid()
$$;

-- Gives a node up whose counter stands where it was seen. It waits for the commit of the journal that may be under way,
-- whose lock it takes; those that come after find the node not alive.
CREATE OR REPLACE FUNCTION cluster_dead_1(dead text, seen bigint, why text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM cluster_nodes n JOIN cluster_beats b ON b.node = n.id
			WHERE n.id = dead AND n.alive AND b.counter = seen) THEN
		RETURN false;
	END IF;
	PERFORM cluster_terminate_1(dead); -- one of them may hold the lock
	IF to_regclass('journal_head') IS NOT NULL THEN
		EXECUTE 'SELECT 1 FROM journal_head FOR UPDATE';
	END IF;
	PERFORM 1 FROM cluster_state FOR UPDATE;
	UPDATE cluster_nodes SET alive = false, ended = now(), reason = why
	WHERE id = dead AND alive AND EXISTS (SELECT FROM cluster_beats WHERE node = dead AND counter = seen);
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	UPDATE cluster_shards SET next = NULL WHERE next = dead;
	PERFORM cluster_change_1();
	RETURN true;
END $$;

-- Frees the shards of a node that was given up, once none of its connections is left, or at last without waiting for
-- them: the journal refuses it in any case. It says how many connections there were.
CREATE OR REPLACE FUNCTION cluster_free_1(dead text, at_last boolean) RETURNS int LANGUAGE plpgsql AS $$
DECLARE backends int;
BEGIN
	PERFORM 1 FROM cluster_state FOR UPDATE;
	IF EXISTS (SELECT FROM cluster_nodes WHERE id = dead AND alive) THEN
		RETURN 0;
	END IF;
	backends := cluster_terminate_1(dead);
	IF backends > 0 AND NOT at_last THEN
		RETURN backends;
	END IF;
	UPDATE cluster_shards SET node = NULL, next = NULL WHERE node = dead;
	DELETE FROM cluster_beats WHERE node = dead;
	PERFORM cluster_change_1();
	RETURN backends;
END $$;

-- Carries out an assignment that was made of what is in the tables still.
CREATE OR REPLACE FUNCTION cluster_assign_1(at bigint, which int[], nodes text[], nexts text[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM cluster_state WHERE epoch = at FOR UPDATE;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	UPDATE cluster_shards s SET node = NULLIF(a.node, ''), next = NULLIF(a.next, '')
	FROM unnest(which, nodes, nexts) AS a(shard, node, next) WHERE s.shard = a.shard;
	PERFORM cluster_change_1();
	RETURN true;
END $$;

-- Hands shards to the nodes that they are meant for.
CREATE OR REPLACE FUNCTION cluster_handover_1(me text, which int[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM cluster_state FOR UPDATE;
	UPDATE cluster_shards SET node = next, next = NULL WHERE shard = ANY (which) AND node = me AND next IS NOT NULL;
	PERFORM cluster_change_1();
END $$;

CREATE OR REPLACE FUNCTION cluster_set_1(me text, is_ready boolean, is_leaving boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM cluster_state FOR UPDATE;
	UPDATE cluster_nodes SET ready = is_ready, leaving = is_leaving
	WHERE id = me AND (ready, leaving) IS DISTINCT FROM (is_ready, is_leaving);
	IF FOUND THEN
		PERFORM cluster_change_1();
	END IF;
END $$;

-- A node ends by itself. What it still has is free at once.
CREATE OR REPLACE FUNCTION cluster_leave_1(me text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF to_regclass('journal_head') IS NOT NULL THEN
		EXECUTE 'SELECT 1 FROM journal_head FOR UPDATE';
	END IF;
	PERFORM 1 FROM cluster_state FOR UPDATE;
	UPDATE cluster_nodes SET alive = false, ended = now(), reason = 'it was stopped', "left" = true WHERE id = me AND alive;
	IF FOUND THEN
		UPDATE cluster_shards SET node = NULL, next = NULL WHERE node = me;
		UPDATE cluster_shards SET next = NULL WHERE next = me;
		DELETE FROM cluster_beats WHERE node = me;
		PERFORM cluster_change_1();
	END IF;
END $$;
