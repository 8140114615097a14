-- A repository's life is another one after it was removed and made again; its version rises with each push.
CREATE TABLE host_repositories (
	project TEXT COLLATE "C" PRIMARY KEY,
	life TEXT NOT NULL,
	version BIGINT NOT NULL
);

-- References by their names, and what else is moved with them: HEAD, and small files of the repository.
CREATE TABLE host_refs (
	project TEXT COLLATE "C" NOT NULL REFERENCES host_repositories ON DELETE CASCADE,
	name TEXT COLLATE "C" NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (project, name)
);

-- A pack has the version that it came with. One that was joined of several has the newest of theirs.
CREATE TABLE host_packs (
	project TEXT COLLATE "C" NOT NULL REFERENCES host_repositories ON DELETE CASCADE,
	version BIGINT NOT NULL,
	pack BIGINT NOT NULL UNIQUE,
	objects BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	inflated BIGINT NOT NULL, -- bytes of its objects
	PRIMARY KEY (project, version)
);

CREATE SEQUENCE host_pack_numbers;

-- What a pack holds. Parts without a row in host_packs were never part of a repository: their sender broke off.
CREATE TABLE host_parts (
	pack BIGINT NOT NULL,
	part INT NOT NULL,
	sent TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
	data BYTEA NOT NULL,
	PRIMARY KEY (pack, part)
);
ALTER TABLE host_parts ALTER COLUMN data SET STORAGE EXTERNAL;

-- host_push adds a pack and moves references, all or nothing, in one call: no client holds a lock. It answers with the
-- version then and the number of packs; with 0 where a reference is not where it is expected to be.
CREATE FUNCTION host_push(p TEXT, names TEXT[], olds TEXT[], news TEXT[], small BYTEA, number BIGINT, objs BIGINT,
	size BIGINT, unpacked BIGINT, OUT l TEXT, OUT v BIGINT, OUT packs BIGINT) LANGUAGE plpgsql AS $$
DECLARE
	have TEXT;
	done BOOLEAN := cardinality(names) > 0;
	moved BOOLEAN := FALSE;
BEGIN
	packs := 0;
	INSERT INTO host_repositories (project, life, version) VALUES (p, gen_random_uuid()::text, 0) ON CONFLICT DO NOTHING;
	SELECT life, version INTO l, v FROM host_repositories WHERE project = p FOR UPDATE;
	FOR i IN 1 .. cardinality(names) LOOP
		SELECT value INTO have FROM host_refs WHERE project = p AND name = names[i];
		done := done AND coalesce(have, '') = news[i];
		moved := moved OR coalesce(have, '') NOT IN (olds[i], news[i]);
	END LOOP;
	IF moved THEN
		v := 0;
		RETURN;
	END IF;
	IF done THEN -- by an earlier call whose answer was lost, or by another node
		RETURN;
	END IF;
	v := v + 1;
	UPDATE host_repositories SET version = v WHERE project = p;
	FOR i IN 1 .. cardinality(names) LOOP
		IF news[i] = '' THEN
			DELETE FROM host_refs WHERE project = p AND name = names[i];
		ELSE
			INSERT INTO host_refs (project, name, value) VALUES (p, names[i], news[i])
				ON CONFLICT (project, name) DO UPDATE SET value = excluded.value;
		END IF;
	END LOOP;
	IF objs > 0 THEN
		IF number = 0 THEN
			number := nextval('host_pack_numbers');
			INSERT INTO host_parts (pack, part, data) VALUES (number, 0, small);
		END IF;
		INSERT INTO host_packs (project, version, pack, objects, bytes, inflated) VALUES (p, v, number, objs, size, unpacked);
	END IF;
	SELECT count(*) INTO packs FROM host_packs WHERE project = p;
END $$;

-- host_join puts a pack in the place of those that it was joined of. It answers false where they are not all there.
-- Called again, since an answer was lost, it changes nothing.
CREATE FUNCTION host_join(p TEXT, joined BIGINT[], number BIGINT, objs BIGINT, size BIGINT, unpacked BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql AS $$
DECLARE
	newest BIGINT;
	found BIGINT;
BEGIN
	PERFORM 1 FROM host_repositories WHERE project = p FOR UPDATE;
	IF EXISTS (SELECT FROM host_packs WHERE pack = number) THEN
		RETURN TRUE;
	END IF;
	SELECT max(version), count(*) INTO newest, found FROM host_packs WHERE project = p AND pack = ANY (joined);
	IF found <> cardinality(joined) THEN
		DELETE FROM host_parts WHERE pack = number;
		RETURN FALSE;
	END IF;
	DELETE FROM host_packs WHERE project = p AND pack = ANY (joined);
	DELETE FROM host_parts WHERE pack = ANY (joined);
	INSERT INTO host_packs (project, version, pack, objects, bytes, inflated)
	VALUES (p, newest, number, objs, size, unpacked);
	RETURN TRUE;
END $$;
