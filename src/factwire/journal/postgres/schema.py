"""The tables, and the numbered steps that make them; each step is one transaction.

Names of facts, threads and projects are kept as keys of fixed size (see `keys`), because an index
takes neither long text nor every character. Facts stand in chunks and nowhere else; everything
beside them is there to find them. `factwire.commit` writes one commit in one round trip, and writes
nothing unless the journal still ends where the writer believes it to end. It takes the keys of the
facts joined, because an array costs more to send than all the rest of a commit.
"""

from typing import Final

from factwire.journal.errors import JournalUnavailable
from factwire.journal.postgres.driver import Connection

MIGRATION_LOCK: Final = 0x66616374
"""Processes that open a database at once migrate it one after the other."""

_TABLES: Final = """
CREATE TABLE factwire.journal (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    epoch text NOT NULL,
    lineage text NOT NULL,
    head bigint NOT NULL DEFAULT 0,
    hash bytea NOT NULL,
    floor bigint NOT NULL DEFAULT 0,
    gap bigint NOT NULL DEFAULT 0,
    base bigint NOT NULL DEFAULT 0,
    base_hash bytea NOT NULL,
    facts bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    threads bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);
COMMENT ON COLUMN factwire.journal.gap IS 'the highest floor that retention gave to one thread';
COMMENT ON COLUMN factwire.journal.base IS 'the last seq that was removed with its whole chunk';
COMMENT ON COLUMN factwire.journal.lineage IS 'system identifier and timeline of the server';

CREATE TABLE factwire.chunk (
    journal int NOT NULL,
    last bigint NOT NULL,
    first bigint NOT NULL,
    facts int NOT NULL,
    size int NOT NULL,
    data bytea STORAGE EXTERNAL NOT NULL,
    index bytea STORAGE EXTERNAL NOT NULL,
    prev bytea NOT NULL,
    hash bytea NOT NULL,
    proof bytea NOT NULL,
    seqs bytea STORAGE EXTERNAL,
    links bytea STORAGE EXTERNAL,
    body bytea NOT NULL,
    PRIMARY KEY (journal, last)
);

CREATE TABLE factwire.fact (key bytea PRIMARY KEY, seq bigint NOT NULL);

CREATE TABLE factwire.removed (
    journal int NOT NULL,
    seq bigint NOT NULL,
    sequence bigint,
    digest bytea NOT NULL,
    PRIMARY KEY (journal, seq)
);

CREATE TABLE factwire.posting (key bigint, last bigint, PRIMARY KEY (key, last));

CREATE TABLE factwire.class (
    journal int,
    name bytea,
    PRIMARY KEY (journal, name)
);

CREATE TABLE factwire.record (
    journal int NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    after bigint NOT NULL,
    prev bytea NOT NULL,
    hash bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (journal, number)
);

CREATE TABLE factwire.thread (
    key bytea PRIMARY KEY,
    journal int NOT NULL,
    last_seq bigint NOT NULL,
    project bytea,
    status text NOT NULL,
    opened bigint,
    floor bigint NOT NULL DEFAULT 0,
    record bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX thread_activity ON factwire.thread (journal, last_seq);
CREATE INDEX thread_opened ON factwire.thread (journal, opened) WHERE opened IS NOT NULL;
COMMENT ON COLUMN factwire.thread.opened IS 'the seq of its oldest open action';

CREATE TABLE factwire.snapshot (
    journal int NOT NULL,
    thread bytea NOT NULL,
    kind bytea NOT NULL,
    seq bigint NOT NULL,
    data bytea STORAGE EXTERNAL NOT NULL,
    anchor bytea NOT NULL,
    PRIMARY KEY (journal, thread, kind, seq)
);
CREATE INDEX snapshot_seq ON factwire.snapshot (journal, seq);

CREATE UNLOGGED TABLE factwire.hold (
    journal int NOT NULL,
    process int NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (journal, process)
);
COMMENT ON TABLE factwire.hold IS
    'how far the slowest reader of each process has come; counts while the process is connected';
"""

_COMMIT: Final = """
CREATE FUNCTION factwire.commit(
    _journal int, _was bigint, _was_hash bytea,
    _head bigint, _data bytea, _index bytea, _hash bytea, _proof bytea, _body bytea,
    _facts bytea, _postings bigint[], _classes bytea[],
    _threads bytea[], _last_seqs bigint[], _projects bytea[], _statuses text[],
    _opened bigint[], _records bytea[], _new_threads int
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE factwire.journal SET
        head = _head, hash = _hash, facts = facts + _head - _was,
        bytes = bytes + length(_data) + length(_index), threads = threads + _new_threads
    WHERE id = _journal AND head = _was AND hash = _was_hash;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO factwire.fact (key, seq)
        SELECT substring(_facts FROM 15 * place + 1 FOR 15), _was + 1 + place
        FROM generate_series(0, (_head - _was - 1)::int) AS place;
    INSERT INTO factwire.chunk
        (journal, last, first, facts, size, data, index, prev, hash, proof, body)
        VALUES (_journal, _head, _was + 1, _head - _was, length(_data) + length(_index),
                _data, _index, _was_hash, _hash, _proof, _body);
    INSERT INTO factwire.posting (key, last) SELECT key, _head FROM unnest(_postings) AS key;
    IF cardinality(_classes) > 0 THEN
        INSERT INTO factwire.class (journal, name)
            SELECT _journal, name FROM unnest(_classes) AS name
            ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(_threads) > 0 THEN
        INSERT INTO factwire.thread (key, journal, last_seq, project, status, opened, record)
            SELECT key, _journal, last_seq, project, status, opened, record
            FROM unnest(_threads, _last_seqs, _projects, _statuses, _opened, _records)
                AS given (key, last_seq, project, status, opened, record)
            ON CONFLICT (key) DO UPDATE SET
                last_seq = excluded.last_seq, project = excluded.project,
                status = excluded.status, opened = excluded.opened, record = excluded.record;
    END IF;
    RETURN true;
END $$;
"""

_REMOVED_IDS: Final = """
ALTER TABLE factwire.removed ADD COLUMN id bytea;
COMMENT ON COLUMN factwire.removed.id IS
    'for exports; null where the fact was removed before this column was there';
"""

MIGRATIONS: Final[tuple[str, ...]] = (_TABLES, _COMMIT, _REMOVED_IDS)
"""Step n stands at place n - 1; a step that was released is never changed."""


async def migrate(connection: Connection) -> None:
    """Bring the database to the newest step."""
    if await connection.fetchval("SELECT to_regclass('factwire.migration')") is None:
        await _begin(connection)
    for number in range(await applied(connection) + 1, len(MIGRATIONS) + 1):
        await _apply(connection, number)


async def _begin(connection: Connection) -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
        await connection.execute("CREATE SCHEMA IF NOT EXISTS factwire")
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS factwire.migration"
            " (number int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
        )


async def applied(connection: Connection) -> int:
    """The step that the database has come to; raises where it is newer than this code."""
    newest = int(
        await connection.fetchval("SELECT coalesce(max(number), 0) FROM factwire.migration")
    )
    if newest > len(MIGRATIONS):
        message = f"the database is at step {newest}, this Factwire knows {len(MIGRATIONS)}"
        raise JournalUnavailable(f"{message}; update Factwire")
    return newest


async def _apply(connection: Connection, number: int) -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
        # Another process may have taken this step while this one waited for the lock.
        if await applied(connection) < number:
            await connection.execute(MIGRATIONS[number - 1])
            await connection.execute("INSERT INTO factwire.migration (number) VALUES ($1)", number)
