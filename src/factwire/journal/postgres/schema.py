"""The tables, the numbered steps that make them, and their rows as values.

Each step is one transaction. Indexes hold keys of fixed size for names of any size.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import msgspec

from factwire.journal.admission import ExistingFact, PreparedFact
from factwire.journal.chunks import ChainLink, Chunk, Record, decode_line, ensure_sound
from factwire.journal.errors import JournalCorrupt, JournalUnavailable
from factwire.journal.postgres.server_connection import PostgresConnection, PostgresRow
from factwire.journal.thread_catalogue import CatalogueRecord

_TIME: Final = 6
_FACT: Final = 15
"""Bytes of a fact's key: with its header, an index entry then takes 24 bytes, not 32."""

_BASE32: Final = str.maketrans(
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdefghijklmnopqrstuv"
)
_ULID: Final = 26
_ULID_TIME: Final = 10
_UUID: Final = 36


class KeyEncoder:
    """Keys within one journal; those of another journal in the database are others."""

    def __init__(self, journal: int) -> None:
        self._salt = journal.to_bytes(8, "big")
        # Copies of these spare reading the parameters again, half of what a short id costs.
        self._timed = blake2b(digest_size=_FACT - _TIME, salt=self._salt)
        self._timeless = blake2b(digest_size=_FACT, salt=self._salt)

    def encode_fact_id(self, fact_id: str) -> bytes:
        return self.encode_fact_ids((fact_id,))[0]

    def encode_fact_ids(self, ids: Iterable[str]) -> list[bytes]:
        """The key of each fact."""
        keys: list[bytes] = []
        for fact_id in ids:
            time = _find_time(fact_id)
            digest = self._timeless.copy() if time is None else self._timed.copy()
            digest.update(fact_id.encode("utf-8", "surrogatepass"))
            keys.append(digest.digest() if time is None else time + digest.digest())
        return keys

    def encode_name(self, text: str) -> bytes:
        """The key of a thread, a project or a kind of snapshot."""
        return blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=16, salt=self._salt
        ).digest()

    def encode_posting(self, key: str) -> int:
        """The number under which the chunks of a filter key are listed.

        Two keys may share a number; a chunk's own index then tells them apart.
        """
        return _hash_number(self._salt, key)


@lru_cache(maxsize=65_536)
def _hash_number(salt: bytes, key: str) -> int:
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, salt=salt).digest()
    return int.from_bytes(digest, "big", signed=True)


def _find_time(fact_id: str) -> bytes | None:
    if len(fact_id) == _UUID and fact_id[14] == "7" and fact_id[8] == "-":
        return _parse_hex_time(fact_id[:8] + fact_id[9:13])
    if len(fact_id) >= _ULID:
        return _parse_ulid_time(fact_id[-_ULID : _ULID_TIME - _ULID])
    return None


@lru_cache(maxsize=4_096)
def _parse_ulid_time(text: str) -> bytes | None:
    try:
        return int(text.translate(_BASE32), 32).to_bytes(_TIME, "big")
    except (ValueError, OverflowError):
        return None


def _parse_hex_time(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


CHUNK_COLUMNS: Final = "first, last, data, index, prev, hash, proof, seqs, links, body"

_encode: Final = msgspec.msgpack.encode
_seqs: Final = msgspec.msgpack.Decoder(tuple[int, ...])
_links: Final = msgspec.msgpack.Decoder(tuple[ChainLink, ...])
_record: Final = msgspec.msgpack.Decoder(CatalogueRecord)


class JournalTip(msgspec.Struct, frozen=True, kw_only=True):
    """Where a journal stands."""

    epoch: str
    head: int
    hash: bytes
    floor: int


def decode_chunk(row: PostgresRow) -> Chunk:
    """The chunk of a row; raises `JournalCorrupt` when it is not the one that was written."""
    return ensure_sound(decode_unchecked_chunk(row))


def decode_unchecked_chunk(row: PostgresRow) -> Chunk:
    """The chunk of a row for a walk, which finds out itself what is wrong with it."""
    seqs, links = row["seqs"], row["links"]
    try:
        return Chunk(
            first=row["first"],
            last=row["last"],
            data=row["data"],
            index=row["index"],
            prev=row["prev"],
            hash=row["hash"],
            check=row["proof"],
            seqs=None if seqs is None else _seqs.decode(seqs),
            links=() if links is None else _links.decode(links),
            body=row["body"],
        )
    except msgspec.MsgspecError as error:
        reason = f"the header of a chunk cannot be read: {error}"
        raise JournalCorrupt(reason, first=row["first"], last=row["last"]) from error


def list_chunk_values(chunk: Chunk) -> tuple[Any, ...]:
    """A chunk as values for the columns after `journal`, in the order of `CHUNK_COLUMNS`."""
    return (
        chunk.first,
        chunk.last,
        chunk.data,
        chunk.index,
        chunk.prev,
        chunk.hash,
        chunk.check,
        None if chunk.seqs is None else _encode(chunk.seqs),
        _encode(chunk.links) if chunk.links else None,
        chunk.body,
    )


def compute_chunk_size(chunk: Chunk) -> int:
    """What a chunk counts in the figures."""
    return len(chunk.data) + len(chunk.index)


def decode_thread(row: PostgresRow) -> CatalogueRecord:
    """The record in a row; retention notes a thread's floor in the column beside it."""
    try:
        record = _record.decode(row["record"])
    except msgspec.MsgspecError as error:
        raise JournalCorrupt(f"the record of a thread cannot be read: {error}") from error
    record.floor = row["floor"]
    return record


def encode_thread(record: CatalogueRecord) -> bytes:
    return _encode(record)


def decode_record(row: PostgresRow) -> Record:
    return Record(after=row["after"], prev=row["prev"], hash=row["hash"], body=row["body"])


_SEQS: Final = "SELECT key, seq FROM factwire.fact WHERE key = ANY($1::bytea[])"
_THREADS_BY_KEY: Final = "SELECT floor, record FROM factwire.thread WHERE key = ANY($1::bytea[])"
_REMOVED: Final = (
    "SELECT seq, sequence, digest FROM factwire.removed"
    " WHERE journal = $1 AND seq = ANY($2::bigint[])"
)
_HOLDERS: Final = f"""
SELECT DISTINCT ON (chunk.last) {", ".join("chunk." + name for name in CHUNK_COLUMNS.split(", "))}
FROM unnest($2::bigint[]) AS wanted (seq) CROSS JOIN LATERAL (
    SELECT * FROM factwire.chunk WHERE journal = $1 AND last >= wanted.seq ORDER BY last LIMIT 1
) AS chunk ORDER BY chunk.last
"""  # noqa: S608


def list_touched_threads(batches: Iterable[Iterable[PreparedFact]]) -> set[str]:
    """Every thread that facts of these batches belong to."""
    return {entry.thread for batch in batches for entry in batch if entry.thread is not None}


class FactLookup:
    """Reads what is stored about ids and threads of one journal."""

    def __init__(self, journal: int, keys: KeyEncoder) -> None:
        self._journal = journal
        self._keys = keys

    async def load_threads(
        self, connection: PostgresConnection, names: Iterable[str]
    ) -> dict[str, CatalogueRecord | None]:
        """The record of each thread, None for one that is new."""
        found: dict[str, CatalogueRecord | None] = dict.fromkeys(names)
        if found:
            rows = await connection.fetch(
                _THREADS_BY_KEY, [self._keys.encode_name(name) for name in found]
            )
            for row in rows:
                record = decode_thread(row)
                found[record.thread_id] = record
        return found

    async def find_seqs(
        self, connection: PostgresConnection, fact_ids: Iterable[str]
    ) -> dict[str, int]:
        """The seq of each id that was ever appended."""
        named = {self._keys.encode_fact_id(fact_id): fact_id for fact_id in fact_ids}
        rows = await connection.fetch(_SEQS, list(named))
        return {named[row["key"]]: row["seq"] for row in rows}

    async def find_existing(
        self, connection: PostgresConnection, fact_ids: Iterable[str]
    ) -> dict[str, ExistingFact]:
        """What the journal has, or had, under each of these ids."""
        seqs = await self.find_seqs(connection, fact_ids)
        if not seqs:
            return {}
        places = sorted(seqs.values())
        gone = await connection.fetch(_REMOVED, self._journal, places)
        at = {
            row["seq"]: ExistingFact(row["seq"], row["sequence"], digest=row["digest"])
            for row in gone
        }
        rest = [seq for seq in places if seq not in at]
        if rest:
            rows = await connection.fetch(_HOLDERS, self._journal, rest)
            at.update(_find_lines_at((decode_chunk(row) for row in rows), set(rest)))
        return _index_by_id(seqs, at)


def _find_lines_at(chunks: Iterable[Chunk], wanted: set[int]) -> dict[int, ExistingFact]:
    found: dict[int, ExistingFact] = {}
    for chunk in chunks:
        for seq, line in zip(chunk.places(), chunk.lines(), strict=True):
            if seq in wanted:
                found[seq] = ExistingFact(seq, decode_line(line).sequence, line)
    return found


def _index_by_id(
    seqs: Mapping[str, int], at: Mapping[int, ExistingFact]
) -> dict[str, ExistingFact]:
    missing = [seq for seq in seqs.values() if seq not in at]
    if missing:
        raise JournalCorrupt("a fact is neither stored nor recorded as removed", first=missing[0])
    return {fact_id: at[seq] for fact_id, seq in seqs.items()}


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

_UNSETTLED: Final = """
CREATE INDEX thread_status ON factwire.thread (journal, status, last_seq)
    WHERE status IN ('running', 'waiting');
"""

MIGRATIONS: Final[tuple[str, ...]] = (_TABLES, _COMMIT, _REMOVED_IDS, _UNSETTLED)
"""Step n stands at place n - 1; a step that was released is never changed."""


async def migrate(connection: PostgresConnection) -> None:
    """Bring the database to the newest step."""
    if await connection.fetchval("SELECT to_regclass('factwire.migration')") is None:
        await _begin(connection)
    for number in range(await load_applied(connection) + 1, len(MIGRATIONS) + 1):
        await _apply(connection, number)


async def _begin(connection: PostgresConnection) -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
        await connection.execute("CREATE SCHEMA IF NOT EXISTS factwire")
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS factwire.migration"
            " (number int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
        )


async def load_applied(connection: PostgresConnection) -> int:
    """The step that the database has come to; raises where it is newer than this code."""
    newest = int(
        await connection.fetchval("SELECT coalesce(max(number), 0) FROM factwire.migration")
    )
    if newest > len(MIGRATIONS):
        message = (
            f"the database is at migration {newest}, but this Factwire only knows {len(MIGRATIONS)}"
        )
        raise JournalUnavailable(f"{message}; update Factwire")
    return newest


async def _apply(connection: PostgresConnection, number: int) -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
        # Another process may have taken this step while this one waited for the lock.
        if await load_applied(connection) < number:
            await connection.execute(MIGRATIONS[number - 1])
            await connection.execute("INSERT INTO factwire.migration (number) VALUES ($1)", number)
