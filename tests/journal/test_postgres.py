"""The journal in PostgreSQL: what it does beyond the contract that all backends share."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from factwire.journal import (
    AppendResult,
    CompactionPolicy,
    ConflictingFact,
    CursorExpired,
    CursorUnknownEpoch,
    Damage,
    Filter,
    JournalClosed,
    JournalUnavailable,
    JournalUrlError,
    RetentionPolicy,
    SequenceConflict,
    open_journal,
)
from factwire.journal.postgres import PostgresJournal, writer
from factwire.journal.postgres.schema import MIGRATIONS, KeyEncoder
from factwire.journal.postgres.server_connection import PostgresConnection, connect
from tests.journal import postgres_server
from tests.journal.contract import close_after, collect
from tests.journal.contract import make_fact as fact
from tests.journal.postgres_facts import follow_until, ids
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio

WAIT = 60


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(uuid4().hex)


@pytest_asyncio.fixture
async def journal(url: str) -> AsyncIterator[PostgresJournal]:
    async with PostgresJournal(url) as opened:
        yield opened


@pytest_asyncio.fixture
async def sql(postgres: PostgresServer) -> AsyncIterator[PostgresConnection]:
    connection = await connect(postgres.dsn, within=WAIT, settings={})
    yield connection
    await connection.close(timeout=WAIT)


@pytest.mark.requirement("journal.postgres.group_commit")
async def test_concurrent_appends_share_commits_and_stay_in_order(journal: PostgresJournal):
    answers = await asyncio.gather(*(journal.append([fact(n)]) for n in range(200)))
    assert [answer.seqs for answer in answers] == [(n + 1,) for n in range(200)]
    assert await ids(journal) == [f"fact-{n}" for n in range(200)]
    assert (await journal.verify()).chunks < 20


@pytest.mark.requirement("journal.postgres.group_commit")
async def test_a_commit_put_together_on_another_falls_with_it(
    journal: PostgresJournal, url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "_HALVED", 1)
    await journal.append([fact("first")])
    async with PostgresJournal(url) as other:
        await other.append([fact("theirs")])
    batches = [[fact(n), fact(f"{n}b", f"t{n % 3}")] for n in range(30)]
    batches[7], batches[11] = [fact("theirs")], [fact("x", sequence=99)]
    answers = await asyncio.gather(*map(journal.append, batches), return_exceptions=True)
    assert isinstance(answers.pop(11), SequenceConflict)
    seqs = [seq for answer in answers if isinstance(answer, AppendResult) for seq in answer.seqs]
    assert seqs == [*range(3, 17), 2, *range(17, 59)]
    assert [seq for seq, _ in await collect(journal.read())] == list(range(1, 59))
    assert (await journal.verify()).ok


@pytest.mark.parametrize("size", [1, 700_000])
async def test_a_commit_is_bounded_in_bytes_but_a_batch_is_never_cut(
    journal: PostgresJournal, size: int
):
    text = {"text": "x" * size}
    batches = [[fact(f"{n}-{part}", payload=text) for part in range(2)] for n in range(4)]
    answers = await asyncio.gather(*map(journal.append, batches))
    assert [answer.seqs for answer in answers] == [(1, 2), (3, 4), (5, 6), (7, 8)]
    assert (await journal.verify()).chunks == (1 if size == 1 else 4)
    assert len(await ids(journal)) == 8


async def test_a_refused_batch_in_a_group_leaves_the_others_alone(journal: PostgresJournal):
    await journal.append([fact(1), fact(2)])
    results = await asyncio.gather(
        journal.append([fact(3)]),
        journal.append([fact(1, title="other")]),
        journal.append([fact(4, sequence=77)]),
        journal.append([fact(5)]),
        journal.append([fact(2)]),
        return_exceptions=True,
    )
    assert [type(result).__name__ for result in results] == [
        "AppendResult",
        "ConflictingFact",
        "SequenceConflict",
        "AppendResult",
        "AppendResult",
    ]
    assert isinstance(results[1], ConflictingFact)
    assert isinstance(results[2], SequenceConflict)
    assert isinstance(results[4], AppendResult)
    assert results[4].repeated == (True,)
    assert await ids(journal) == ["fact-1", "fact-2", "fact-3", "fact-5"]


async def test_a_repeat_with_its_old_sequence_is_no_sequence_conflict(journal: PostgresJournal):
    first = await journal.append([fact(1, sequence=1), fact(2, sequence=2)])
    again, new = await asyncio.gather(
        journal.append([fact(1, sequence=1)]), journal.append([fact(3)])
    )
    assert (again.seqs, again.repeated) == (first.seqs[:1], (True,))
    assert new.seqs == (3,)


@pytest.mark.requirement("journal.postgres.shared")
async def test_two_handles_append_to_one_journal_without_gaps(url: str):
    async with PostgresJournal(url) as one, PostgresJournal(url) as other:
        mine = [one.append([fact(f"a{n}", "a"), fact(f"b{n}", "b")]) for n in range(60)]
        theirs = [other.append([fact(f"c{n}", "a")]) for n in range(60)]
        answers = await asyncio.gather(*mine, *theirs)
        seqs = sorted(seq for answer in answers for seq in answer.seqs)
        assert seqs == list(range(1, 181))
        assert await ids(one) == await ids(other)
        thread = await one.thread("a")
        assert thread is not None
        assert (thread.last_sequence, thread.fact_count) == (120, 120)
        assert (await one.verify()).ok


@pytest.mark.requirement("journal.postgres.named")
async def test_journals_of_one_database_know_nothing_of_each_other(postgres: PostgresServer):
    names = [uuid4().hex, uuid4().hex]
    async with PostgresJournal(postgres.url(names[0])) as one:
        await one.append([fact(1)])
        async with PostgresJournal(postgres.url(names[1])) as other:
            assert (await other.append([fact(1, title="other")])).seqs == (1,)
            titles = [each.title async for found in other.read() for _, each in found.facts()]
            assert titles == ["other"]
            with pytest.raises(CursorUnknownEpoch):
                await collect(other.read(await one.head()))


@pytest.mark.requirement("journal.postgres.notified")
async def test_a_notification_wakes_the_follower_of_another_process(postgres: PostgresServer):
    url = postgres.url(uuid4().hex, poll="3600")
    async with PostgresJournal(url) as one, PostgresJournal(url) as other:
        following = asyncio.create_task(follow_until(other, 3))
        for n in range(3):
            await one.append([fact(n)])
        found = await asyncio.wait_for(following, WAIT)
    assert found == ["fact-0", "fact-1", "fact-2"]


@pytest.mark.requirement("journal.postgres.polled")
async def test_a_lost_notification_loses_no_fact(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
):
    url = postgres.url(uuid4().hex, poll="0.05")
    async with PostgresJournal(url) as one, PostgresJournal(url) as other:
        handle = one._handle
        assert handle is not None
        monkeypatch.setattr(handle._watch, "notify_soon", lambda: None)
        following = asyncio.create_task(follow_until(other, 3))
        for n in range(3):
            await one.append([fact(n)])
        found = await asyncio.wait_for(following, WAIT)
    assert found == ["fact-0", "fact-1", "fact-2"]


@pytest.mark.requirement("journal.postgres.holds")
async def test_retention_spares_what_the_follower_of_another_process_needs(url: str):
    async with PostgresJournal(url) as one, PostgresJournal(url) as other:
        for n in range(10):
            await one.append([fact(n)])
        async with close_after(other.follow(str(await one.position("fact-3")))) as follower:
            await anext(follower)
            removal = await one.retain(RetentionPolicy(keep_facts=1))
        assert removal.floor.seq == 4
        assert [name.partition("-")[0] for name in removal.held_by] == ["reader process"]
    async with PostgresJournal(url) as one:
        assert (await one.retain(RetentionPolicy(keep_facts=1))).floor.seq == 9


@pytest.mark.requirement("journal.postgres.for_ever")
async def test_an_id_stays_taken_after_retention_and_restart(url: str):
    async with PostgresJournal(url) as journal:
        await journal.append([fact(n) for n in range(10)])
        await journal.append([fact(10)])
        await journal.retain(RetentionPolicy(keep_facts=2))
    async with PostgresJournal(url) as journal:
        again = await journal.append([fact(3), fact(10)])
        assert (again.seqs, again.sequences) == ((4, 11), (4, 11))
        assert again.repeated == (True, True)
        with pytest.raises(ConflictingFact):
            await journal.append([fact(3, title="other")])
        with pytest.raises(CursorExpired):
            await collect(journal.read("fact-3"))
        assert (await journal.verify()).ok


@pytest.mark.requirement("journal.postgres.sealed")
async def test_compaction_joins_small_chunks_and_keeps_every_hash(journal: PostgresJournal):
    for n in range(40):
        await journal.append([fact(n, f"t{n % 3}")])
    before, lines = await journal.verify(), await collect(journal.read())
    await journal.compact(CompactionPolicy())
    after = await journal.verify()
    assert (before.chunks, after.chunks) == (40, 2)
    assert (after.ok, after.head, after.facts) == (True, before.head, 40)
    assert await collect(journal.read()) == lines
    some = await collect(journal.read(filter=Filter(thread="t1")))
    assert [seq for seq, _ in some] == list(range(2, 41, 3))
    stats = await journal.stats()
    assert (stats.facts, stats.threads) == (40, 3)


@pytest.mark.requirement("journal.postgres.lineage")
async def test_a_database_from_another_server_or_timeline_gets_a_new_epoch(
    url: str, sql: PostgresConnection
):
    async with PostgresJournal(url) as journal:
        cursor = (await journal.append([fact(1)])).cursor
    name = url.partition("journal=")[2]
    await sql.execute("UPDATE factwire.journal SET lineage = '1/00000001' WHERE name = $1", name)
    async with PostgresJournal(url) as journal:
        with pytest.raises(CursorUnknownEpoch):
            await collect(journal.read(cursor))
        assert await ids(journal) == ["fact-1"]
        epoch = (await journal.head()).epoch
    async with PostgresJournal(url) as journal:
        assert (await journal.head()).epoch == epoch


@pytest.mark.requirement("journal.postgres.durable")
async def test_a_server_without_fsync_is_refused_unless_the_url_allows_it():
    with PostgresServer({"fsync": "off"}) as server:
        with pytest.raises(JournalUrlError, match="fsync=off"):
            await PostgresJournal(server.url()).__aenter__()
        async with PostgresJournal(server.url(durable="no")) as journal:
            assert (await journal.append([fact(1)])).seqs == (1,)


@pytest.mark.requirement("journal.postgres.durable")
async def test_commits_are_synchronous_whatever_the_role_was_given(
    postgres: PostgresServer, sql: PostgresConnection
):
    await sql.execute("DROP ROLE IF EXISTS hasty")
    await sql.execute("CREATE ROLE hasty SUPERUSER LOGIN")
    await sql.execute("ALTER ROLE hasty SET synchronous_commit = off")
    async with PostgresJournal(postgres.url(uuid4().hex, user="hasty")) as journal:
        handle = journal._handle
        assert handle is not None
        setting = await handle.sessions.run(lambda link: link.fetchval("SHOW synchronous_commit"))
    assert setting == "on"


@pytest.mark.requirement("journal.postgres.migrated")
async def test_processes_that_open_a_new_database_at_once_migrate_it_once():
    with PostgresServer() as server:
        opened = [PostgresJournal(server.url()) for _ in range(4)]
        await asyncio.gather(*(each.__aenter__() for each in opened))
        answers = await asyncio.gather(*(each.append([fact(n)]) for n, each in enumerate(opened)))
        assert sorted(answer.seqs for answer in answers) == [(1,), (2,), (3,), (4,)]
        connection = await connect(server.dsn, within=WAIT, settings={})
        rows = await connection.fetch("SELECT number FROM factwire.migration ORDER BY number")
        assert [row["number"] for row in rows] == list(range(1, len(MIGRATIONS) + 1))
        await connection.execute("INSERT INTO factwire.migration (number) VALUES (9999)")
        with pytest.raises(JournalUnavailable, match="update Factwire"):
            await PostgresJournal(server.url()).__aenter__()
        await connection.close(timeout=WAIT)
        await asyncio.gather(*(each.__aexit__(None, None, None) for each in opened))


@pytest.mark.requirement("journal.verify.snapshots")
async def test_a_snapshot_that_stands_on_another_chain_is_named(
    journal: PostgresJournal, sql: PostgresConnection
):
    appended = await journal.append([fact(1), fact(2)])
    await journal.save_snapshot("thread-1", appended.cursor, b"state")
    assert (await journal.verify()).ok
    await sql.execute("UPDATE factwire.snapshot SET anchor = $1", bytes(32))
    damage = (await journal.verify()).damage
    assert damage == Damage(first=2, last=2, reason="a snapshot at 2 does not belong to this chain")


@pytest.mark.requirement("journal.postgres.damage")
async def test_changed_bytes_are_named_and_never_served(
    journal: PostgresJournal, url: str, sql: PostgresConnection
):
    for n in range(5):
        await journal.append([fact(n)])
    await sql.execute(
        "UPDATE factwire.chunk SET data = set_byte(data, 20, get_byte(data, 20) # 1) WHERE last = 3"
        " AND journal = (SELECT id FROM factwire.journal WHERE name = $1)",
        url.partition("journal=")[2],
    )
    report = await journal.verify()
    assert report.damage is not None
    assert (report.intact, report.damage.first, report.damage.last) == (2, 3, 3)
    with pytest.raises(Exception, match="damaged at 3"):
        await ids(journal)


@pytest.mark.requirement("journal.postgres.url")
@pytest.mark.parametrize(
    "query", ["journal=", "journal=a/b", "patience=0", "patience=x", "poll=-1", "durable=maybe"]
)
async def test_a_url_that_makes_no_sense_is_refused_without_its_password(query: str):
    with pytest.raises(JournalUrlError) as caught:
        open_journal(f"postgres://me:hunter2@localhost/db?{query}")
    assert "hunter2" not in str(caught.value)


async def test_an_unknown_database_is_refused_at_once(postgres: PostgresServer):
    url = postgres.url().replace("/postgres?", "/nowhere?")
    with pytest.raises(JournalUrlError, match="nowhere"):
        await PostgresJournal(url).__aenter__()


async def test_a_closed_journal_says_so(journal: PostgresJournal, url: str):
    async with PostgresJournal(url) as other:
        following = asyncio.create_task(follow_until(other, 1))
        await other.head()
    with pytest.raises(JournalClosed):
        await asyncio.wait_for(following, WAIT)
    with pytest.raises(JournalClosed):
        await other.append([fact(1)])
    assert await ids(journal) == []


async def test_names_of_any_length_and_any_character_are_kept(journal: PostgresJournal):
    long, odd = "x" * 10_000, "nul \x00 and ☃"
    await journal.append([fact(long, odd, event_class=odd), fact(odd, long)])
    thread = await journal.thread(odd)
    assert thread is not None
    assert thread.thread_id == odd
    assert await ids(journal, Filter(thread=odd, classes=(odd,))) == [f"fact-{long}"]
    assert (await journal.position(f"fact-{odd}")).seq == 2


async def test_ids_with_a_time_in_them_are_kept_in_the_order_of_time():
    keys = KeyEncoder(1)
    ulids = ["evt_01JZZZZZZZ0000000000000000", "evt_01K000000000000000000000AA"]
    uuids = ["0197fe00-0000-7000-8000-00000000000f", "0197fe00-0001-7000-8000-000000000001"]
    for early, late in (ulids, uuids):
        assert keys.encode_fact_id(early) < keys.encode_fact_id(late)
        assert (
            len(
                {
                    keys.encode_fact_id(early),
                    keys.encode_fact_id(late),
                    KeyEncoder(2).encode_fact_id(early),
                }
            )
            == 3
        )
    others = ["short", "z" * 26, "U" * 40, "g197fe00-0000-7000-8000-00000000000f"]
    assert len({keys.encode_fact_id(name) for name in others}) == len(others)
