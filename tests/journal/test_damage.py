"""Changed bytes: found, named, and never handed out as if nothing had happened."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from factwire.journal import (
    Cursor,
    Damage,
    Filter,
    Journal,
    JournalCorrupt,
    JournalError,
    RetentionPolicy,
    open_journal,
)
from factwire.journal.sqlite import handle, schema, writer
from factwire.journal.sqlite.schema import connect
from tests.journal.contract import collect, make_fact

ROUNDS = 500
FACTS = 240


async def build(path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A journal in which everything has happened: merges, seals, snapshots, removals."""
    with monkeypatch.context() as patch:
        patch.setattr(handle, "RUN_IDS", 40)
        patch.setattr(writer, "LOOSE_CHUNKS", 8)
        patch.setattr(writer, "LOOSE_ENOUGH", 2)
        async with open_journal(f"sqlite:{path}") as journal:
            for number in range(1, FACTS, 2):
                turn = f"turn-{number // 20}"
                batch = [
                    make_fact(number + part, f"t{number % 5}", turn_id=turn) for part in (0, 1)
                ]
                await journal.append(batch)
            await journal.save_snapshot("t1", Cursor((await journal.head()).epoch, 100), b"s" * 300)
            await journal.retain(RetentionPolicy(max_age=FACTS - 21))
            await journal.append([make_fact("last", "t1")])
    return vacuum_file(path)


def vacuum_file(path: Path) -> bytes:
    """The file without its free pages, which hold nothing that could be damaged."""
    connection = connect(str(path), vfs=None)
    connection.execute("VACUUM")
    connection.close()
    return path.read_bytes()


def remove(path: Path) -> None:
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()


async def answers(journal: Journal) -> dict[str, Any]:
    """Everything that a journal says, apart from its epoch; an error is an answer too."""
    questions: dict[str, Callable[[], Awaitable[Any]]] = {
        "all": lambda: collect(journal.read()),
        "thread": lambda: collect(journal.read(filter=Filter(thread="t1"))),
        "turn": lambda: collect(journal.read(filter=Filter(turn="turn-3"))),
        "threads": lambda: _rows(journal),
        "snapshot": lambda: _snapshot(journal),
        "repeat": lambda: _repeat(journal, 50),
        "retired": lambda: _repeat(journal, 3),
    }
    found: dict[str, Any] = {}
    for name, ask in questions.items():
        try:
            found[name] = await ask()
        except JournalError as error:
            found[name] = error
    return found


async def _rows(journal: Journal) -> object:
    return (await journal.threads()).threads


async def _snapshot(journal: Journal) -> object:
    found = await journal.snapshot("t1")
    return found and (found.cursor.seq, found.data, found.anchor)


async def _repeat(journal: Journal, number: int) -> object:
    start = (number - 1) // 2 * 2 + 1
    fact = make_fact(number, f"t{start % 5}", turn_id=f"turn-{start // 20}")
    answer = await journal.append([fact])
    return (answer.seqs, answer.repeated)


async def look(path: Path) -> tuple[dict[str, Any], object]:
    """What a journal says, and what is found to be wrong with it, by opening it or by verifying."""
    try:
        async with open_journal(f"sqlite:{path}") as journal:
            report = await journal.verify()
            return await answers(journal), report.damage
    except JournalError as error:
        return {}, error


async def damage_of(path: Path) -> Damage:
    """What a verification beside a writer finds, which needs no sound journal to begin with."""
    async with open_journal(f"sqlite:{path}?mode=ro") as journal:
        report = await journal.verify()
        assert report.damage is not None
        assert report.intact == report.damage.first - 1
        with pytest.raises(JournalCorrupt) as refused:
            await collect(journal.read())
        assert refused.value.first is not None
        assert report.damage.first <= refused.value.first <= report.damage.last
        return report.damage


def damage(content: bytes, random: Random) -> bytes:
    """The content with one bit flipped, or cut off somewhere."""
    if random.random() < 0.1:
        return content[: random.randrange(len(content))]
    changed = bytearray(content)
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.damage")
async def test_a_changed_byte_is_never_served_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    content = await build(tmp_path / "whole.db", monkeypatch)
    whole, none = await look(tmp_path / "whole.db")
    assert none is None
    random = Random(4)
    found = 0
    for number in range(ROUNDS):
        path = tmp_path / f"changed-{number}.db"
        path.write_bytes(damage(content, random))
        answer_by_name, bad = await look(path)
        wrong = {name for name, answer in answer_by_name.items() if answer != whole[name]}
        assert all(isinstance(answer_by_name[name], JournalError) for name in wrong), wrong
        # A change in a page that nothing refers to changes no answer, and needs no report.
        assert bad is not None or not wrong, wrong
        found += bad is not None
        remove(path)
    assert found > ROUNDS // 2


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("journal.verify")
async def test_verify_names_the_place_of_a_changed_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    content = await build(tmp_path / "whole.db", monkeypatch)
    random = Random(5)
    for number in random.sample(range(30, FACTS), 40):
        path = tmp_path / f"changed-{number}.db"
        path.write_bytes(content.replace(b'"id":"fact-%d"' % number, b'"id":"tact-%d"' % number))
        found = await damage_of(path)
        assert found.first <= number <= found.last


@pytest.mark.fault
@pytest.mark.asyncio
async def test_without_its_checks_a_journal_would_serve_changed_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    content = await build(tmp_path / "whole.db", monkeypatch)
    changed = content.replace(b'"id":"fact-77"', b'"id":"fact-7X"')
    assert changed != content
    (tmp_path / "changed.db").write_bytes(changed)
    monkeypatch.setattr(schema, "ensure_extent", lambda extent: extent)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    async with open_journal(f"sqlite:{tmp_path / 'changed.db'}") as journal:
        assert (77, "fact-7X") in await collect(journal.read())


@pytest.mark.asyncio
@pytest.mark.requirement("journal.verify")
async def test_facts_removed_behind_the_journals_back_are_missed(tmp_path: Path):
    path = tmp_path / "journal.db"
    async with open_journal(f"sqlite:{path}") as journal:
        for number in range(1, 9):
            await journal.append([make_fact(number)])
    connection = connect(str(path), vfs=None)
    connection.execute("DELETE FROM chunks WHERE first <= 3")
    connection.close()
    assert (await damage_of(path)).first == 1
