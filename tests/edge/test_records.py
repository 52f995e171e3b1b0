"""Lists of an Edge: the same from any start, and nothing but what facts say."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.edge.limits import MARKED_TURNS
from factwire.edge.records import Records, read_records
from factwire.edge.records.edge_records import RECORDS_FILE
from factwire.facts import Fact, read_fact, write_fact
from factwire.journal import Cursor, open_journal
from factwire.journal.chunks import decode_line
from factwire.serving.paging import RowDatabase, RowTable, build_page

STREAMS = sorted(
    (Path(__file__).resolve().parent.parent.parent / "examples" / "streams").glob("*.ndjson")
)
EPOCH = "0123456789abcdef"


TABLES = (
    "projects",
    "conversations",
    "threads",
    "runs",
    "approvals",
    "artifacts",
    "tasks",
    "previews",
    "evidence",
    "places",
    "marked_turns",
)


def _dump(records: Records) -> dict[str, list[tuple[Any, Any]]]:
    return {name: list(getattr(records, name).newest_by_key()) for name in TABLES}


def _open(path: Path, epoch: str = EPOCH) -> Records:
    return Records(RowDatabase(path, "1", epoch))


@pytest.mark.requirement("edge.records.pure")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_records_that_were_saved_go_on_like_those_that_were_not(path: Path, tmp_path: Path):
    facts = [decode_line(line) for line in path.read_bytes().splitlines()]
    whole = Records()
    for seq, fact in enumerate(facts, 1):
        whole.apply(seq, fact)
    for cut in {1, len(facts) // 3, len(facts) // 2, len(facts) - 1} - {0}:
        file = tmp_path / f"{cut}.db"
        first = _open(file)
        for seq, fact in enumerate(facts[:cut], 1):
            first.apply(seq, fact)
        first.database.save(cut)
        for seq, fact in enumerate(facts[cut:], cut + 1):
            first.apply(seq, fact)
        assert _dump(first) == _dump(whole)
        later = _open(file)
        assert later.seq == cut
        for seq, fact in enumerate(facts[cut:], cut + 1):
            later.apply(seq, fact)
            later.database.save(seq)
        assert _dump(later) == _dump(whole)


def test_records_in_memory_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Records().database.save(1)
    assert list(tmp_path.iterdir()) == []


_TURN_FACTS = st.fixed_dictionaries(
    {
        "eventClass": st.sampled_from(
            ["turn.submitted", "turn.started", "turn.completed", "turn.failed"]
        ),
        "threadId": st.sampled_from("ab"),
        "turnId": st.sampled_from(["trn_1", "trn_2", "trn_3"]),
    },
    optional={
        "taskId": st.sampled_from(["task_1", "task_2"]),
        "parentTaskId": st.just("plan"),
        "workerId": st.sampled_from(["worker_1", "worker_2"]),
    },
)


@pytest.mark.requirement("edge.records.pure")
@given(st.lists(_TURN_FACTS, min_size=2, max_size=12), st.data())
def test_turns_that_name_a_task_are_listed_alike_after_any_restart(
    rows: list[dict[str, str]], data: st.DataObject
):
    plain = _build_facts(*((each["eventClass"], each["threadId"], each["turnId"]) for each in rows))
    facts = [read_fact(write_fact(fact) | row) for fact, row in zip(plain, rows, strict=True)]
    cut = data.draw(st.integers(1, len(facts) - 1))
    whole = Records()
    for seq, fact in enumerate(facts, 1):
        whole.apply(seq, fact)
    with TemporaryDirectory() as folder:
        first = _open(Path(folder) / "records.db")
        for seq, fact in enumerate(facts[:cut], 1):
            first.apply(seq, fact)
        first.database.save(cut)
        first.database.close()
        later = _open(Path(folder) / "records.db")
        for seq, fact in enumerate(facts[cut:], cut + 1):
            later.apply(seq, fact)
        assert _dump(later) == _dump(whole)
        later.database.close()


@pytest.mark.requirement("edge.records.pure")
def test_no_number_of_turns_beside_a_thread_makes_its_own_turn_forgotten():
    own = {"parentTaskId": "plan", "taskId": "task_1"}
    names = [f"trn_{number}" for number in range(2, MARKED_TURNS + 4)]
    rows = [("turn.started", "a", "trn_1", own)]
    rows += [("turn.started", "a", name, {"workerId": name}) for name in names]
    rows += [("turn.completed", "a", "trn_1", own)]
    records = Records()
    for seq, (fact, row) in enumerate(zip(_build_facts(*(r[:3] for r in rows)), rows, strict=True)):
        records.apply(seq + 1, read_fact(write_fact(fact) | row[3]))
    assert [(row.run_id, row.status) for row in records.runs.newest()] == [("run_1", "finished")]
    [turns] = records.marked_turns.newest()
    assert turns.beside == names[-MARKED_TURNS:]
    records.apply(len(rows) + 1, _build_facts(("thread.deleted", "a", "trn_1"))[0])
    assert list(records.marked_turns.newest()) == []


@pytest.mark.requirement("edge.records.pure")
def test_what_was_saved_of_another_journal_or_is_damaged_is_not_read(tmp_path: Path):
    file = tmp_path / "records.db"
    [fact] = _build_facts(("turn.submitted", "a", "trn_1"))
    records = _open(file)
    records.apply(1, fact)
    records.database.save(1)
    records.database.close()
    assert _open(file).seq == 1
    assert _open(file, "f" * 16).seq == 0
    file.write_bytes(b"this is no database" * 1000)
    assert _open(file).seq == 0


def _build_facts(*rows: tuple[str, str, str]) -> list[Fact]:
    """Facts of a class on a thread, with a turn's id."""
    places: Counter[str] = Counter()
    return [
        read_fact(
            {
                "id": f"f{number}",
                "kind": "state",
                "status": "running",
                "title": event_class,
                "createdAt": "2026-01-01T00:00:00Z",
                "schemaVersion": "factwire-fact/v1",
                "runtimeId": f"rt-{thread}",
                "eventClass": event_class,
                "threadId": thread,
                "sequence": _next(places, thread),
                "turnId": turn,
                "actionId": "act_1",
                "payload": {"prompt": f"asked on {thread}"},
            }
        )
        for number, (event_class, thread, turn) in enumerate(rows, 1)
    ]


def _next(places: Counter[str], thread: str) -> int:
    places[thread] += 1
    return places[thread]


@pytest.mark.requirement("edge.records.belonging")
def test_threads_that_use_one_id_do_not_touch_each_others_rows():
    facts = _build_facts(
        ("turn.submitted", "a", "trn_1"),
        ("action.required", "a", "trn_1"),
        ("turn.submitted", "b", "trn_1"),
        ("action.required", "b", "trn_1"),
        ("action.resolved", "b", "trn_1"),
        ("turn.completed", "b", "trn_1"),
    )
    records = Records()
    for seq, fact in enumerate(facts, 1):
        records.apply(seq, fact)
    runs = {place.key: (row.thread_id, row.status) for place, row in records.runs.newest_by_key()}
    assert runs == {"run_1": ("a", "queued"), "b~run_1": ("b", "finished")}
    approvals = {
        place.key: (row.thread_id, row.run_id, row.status)
        for place, row in records.approvals.newest_by_key()
    }
    assert approvals == {
        "act_1": ("a", "run_1", "pending"),
        "b~act_1": ("b", "b~run_1", "denied"),
    }
    assert [row.title for row in records.threads.newest()] == ["asked on b", "asked on a"]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.records.pure")
async def test_lists_read_anew_are_those_that_grew_fact_by_fact(tmp_path: Path):
    facts = _build_facts(
        ("turn.submitted", "a", "trn_1"),
        ("action.required", "b", "trn_9"),
        ("model.delta", "c", "trn_3"),
        ("turn.submitted", "a", "trn_2"),
        ("turn.submitted", "c", "trn_3"),
        ("action.required", "c", "trn_3"),
        ("turn.submitted", "b", "trn_1"),
    )
    async with open_journal(f"sqlite:{tmp_path}/j.db") as journal:
        await journal.append(facts)
        grown = Records()
        async for batch in journal.read():
            for seq, fact in batch.facts():
                grown.apply(seq, fact)
        read, cursor = await read_records(journal, tmp_path)
        assert cursor.seq == len(facts)
        assert _dump(read) == _dump(grown)
        read.database.close()
        (tmp_path / RECORDS_FILE).write_bytes(b"damaged")
        again, _ = await read_records(journal, tmp_path)
    assert _dump(again) == _dump(grown)


class NumberedRow(msgspec.Struct, kw_only=True):
    seq: int
    half: str


@pytest.mark.requirement("edge.lists.later-pages")
@pytest.mark.parametrize("half", [None, "odd"], ids=["all", "by-column"])
def test_a_later_page_costs_no_more_than_the_first_one(half: str | None):
    database = RowDatabase(None, "1", "")
    table = RowTable(database, "numbered", NumberedRow, {"half": lambda row: row.half})
    for seq in range(20_000):
        table.add(f"row-{seq}", NumberedRow(seq=seq, half="odd" if seq % 2 else "even"))
    database.save(1)
    steps = 0

    def count_step() -> bool:
        nonlocal steps
        steps += 1
        return False

    cast("Any", database.connection).set_progress_handler(count_step, 100)
    first = build_page(Cursor(EPOCH, 1), table, None, 100, half=half)
    cost_of_first, steps = steps, 0
    second = build_page(Cursor(EPOCH, 1), table, first.next, 100, half=half)
    assert [row.seq for row in second.items] == [
        row.seq - (200 if half else 100) for row in first.items
    ]
    assert steps <= 2 * cost_of_first
