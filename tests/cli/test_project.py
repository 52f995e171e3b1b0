"""`factwire project`: the state of facts, wherever and however they are written down."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import msgspec
import pytest

from factwire.facts import Fact, decode_fact, write_fact
from factwire.journal import Cursor, FactBatch, Filter, memory_journal
from factwire.journal.memory_journal import MemoryJournal
from factwire.projection import Projection, order_facts
from tests.cli.cli_commands import Factwire, lines
from tests.cli.cli_recordings import HOSTILE, Recorder, Wire, facts, teamwork, turn
from tests.cli.journal_files import damage, make
from tests.journal.nats_server import nats_server
from tests.journal.postgres_server import postgres

__all__ = ["nats_server", "postgres"]

FAMILY = ("main", "child", "named")
FIRST_TURN = Path(__file__).resolve().parents[2] / "examples" / "first_turn.ndjson"


def snapshot(values: list[Wire], thread: str | None = None) -> str:
    """What the projection itself makes of these facts."""
    projection = Projection(thread)
    projection.apply_all(facts(values))
    return projection.snapshot().decode() + "\n"


def in_order(values: list[Wire]) -> list[Wire]:
    """The same facts in the order in which a file of them is projected."""
    named = {value["id"]: value for value in values}
    return [named[fact.id] for fact in order_facts(facts(values))]


def of_family(values: list[Wire]) -> list[Wire]:
    return [value for value in values if value["threadId"] in FAMILY]


def fixture(values: list[Wire]) -> bytes:
    about: Wire = {"id": "f", "schemaVersion": "agent-ui-fixture/v0.1", "title": "A turn"}
    return msgspec.json.encode({**about, "expected": {}, "events": values})


def in_shape(values: list[Wire], shape: Any) -> str:
    return lines(*(write_fact(fact, shape) for fact in facts(values)))


@pytest.mark.requirement("cli.project.forms")
@pytest.mark.requirement("cli.project.json")
def test_every_form_and_shape_of_the_same_facts_gives_one_state(factwire: Factwire):
    run = turn()
    forms: dict[str, bytes | str] = {
        "lines": lines(*run),
        "array": msgspec.json.encode(run),
        "fixture": fixture(run),
        "runtime events": in_shape(run, "runtime-event"),
        "UI events": in_shape(run, "ui"),
    }
    expected = (0, snapshot(run), "")
    for form, content in forms.items():
        path = factwire.file(content, form)
        assert factwire("project", path, "--json") == expected, form
        data = content if isinstance(content, bytes) else content.encode()
        assert factwire("project", "-", "--json", stdin=data) == expected, form
    one = factwire.file(msgspec.json.encode(run[0]), "one")
    assert factwire("project", one, "--json").out == snapshot(run[:1])


@pytest.mark.requirement("cli.project.forms")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_a_name_is_read_although_it_can_be_read_once(factwire: Factwire):
    pipe = factwire.folder / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(lines(*turn()),), daemon=True)
    writer.start()
    assert factwire("project", pipe, "--json").out == snapshot(turn())
    writer.join(60)


@pytest.mark.requirement("cli.project.forms")
def test_a_journal_gives_the_state_that_its_facts_give(factwire: Factwire):
    path = make(factwire.folder / "runs.db", facts(turn())[:4], facts(turn())[4:])
    expected = (0, snapshot(turn()), "")
    assert factwire("project", path, "--json") == expected
    assert factwire("project", f"sqlite:{path}", "--json") == expected
    assert factwire("project", path, "--json", "--thread", "t1") == expected


@pytest.mark.requirement("cli.project.forms")
@pytest.mark.parametrize("server", ["postgres", "nats_server"])
def test_a_journal_in_a_server_gives_the_same(
    factwire: Factwire, request: pytest.FixtureRequest, server: str
):
    url: str = request.getfixturevalue(server).url(f"cli{uuid4().hex}")
    make(url, facts(teamwork()))
    done = factwire("project", url, "--json", "--thread", "main")
    assert (done.code, done.out) == (0, snapshot(of_family(teamwork())))


@pytest.mark.requirement("cli.project.summary")
def test_a_person_sees_every_part_that_says_something(factwire: Factwire):
    record = Recorder("t1")
    record.facts = turn(title="Nightly")
    record("evidence.changed", evidenceId="e", payload={"title": "Tests", "verdict": "passed"})
    record("task.progress", taskId="k", payload={"title": "Fix", "progress": {"completedSteps": 1}})
    record("runtime.warning", payload={"code": "slow", "message": "It is slow."})
    request = {"prompt": "Push?", "command": "git push", "severity": "low"}
    record("action.required", "blocked", actionId="a2", subagentId="writer", payload=request)
    done = factwire("project", factwire.file(lines(*record.facts)))
    assert (done.code, done.err) == (0, "")
    shown = [line.rstrip() for line in done.out.splitlines()]
    assert shown == [
        "thread  t1",
        "title   Nightly",
        "status  ■ waiting · turn turn_1 completed",
        "facts   live · 15 facts up to sequence 15",
        "",
        "Conversation",
        "  user  Fix the report, please.",
        "",
        "  assistant  Done.",
        "  [artifact: report.py]",
        "  [evidence: Tests – passed]",
        "",
        "Tools",
        "  ✓ bash  12 passed",
        "",
        "Open actions",
        "  ? Push?  low",
        "    a2  requested by writer",
        "    $ git push",
        "",
        "Tasks",
        "  ▸ Fix  1/? steps",
        "",
        "Artifacts",
        "  created report.py  unknown",
        "",
        "Evidence",
        "  available Tests  unknown  passed",
        "",
        "Diagnostics",
        "  ! slow  It is slow.",
    ]


@pytest.mark.requirement("cli.project.summary")
def test_a_person_sees_the_team_and_what_is_missing(factwire: Factwire):
    run = [fact for fact in of_family(teamwork()) if fact["id"] != "main-3"]
    shown = factwire("project", factwire.file(lines(*run))).out
    assert "facts   degraded · 10 facts up to sequence 7 · missing 3\n" in shown
    whole = factwire("project", factwire.file(lines(*of_family(teamwork())))).out
    _, _, team = whole.partition("\nTeam\n")
    assert [line.strip() for line in team.splitlines()] == [
        "Crew  coordinator_team",
        "✓ Reviewer  reviewer  on k2",
        "▸ Writer  subagent  on k1",
        "▸ task Write it",
        "requested handoff Writer → Reviewer  review",
    ]


@pytest.mark.requirement("cli.project.summary")
def test_a_long_state_is_cut_for_people_and_says_so(factwire: Factwire):
    record = Recorder("t1")
    for number in range(30):
        record("tool.started", toolCallId=f"c{number}", payload={"toolName": f"tool{number}"})
    shown = factwire("project", factwire.file(lines(*record.facts))).out
    assert "10 more; use --json to see all" in shown
    assert " tool9" not in shown
    assert " tool10" in shown


@pytest.mark.requirement("cli.errors.harmless-text")
def test_text_of_facts_cannot_steer_the_terminal(factwire: Factwire):
    run = turn(say=HOSTILE, title=HOSTILE)
    for fact in run:
        fact["title"] = HOSTILE
    request = {"prompt": HOSTILE, "command": [HOSTILE], "severity": HOSTILE}
    run[6]["payload"] = request
    path = factwire.file(lines(*run))
    for arguments in (["project", path], ["project", path, "--at", "7"]):
        done = factwire(*arguments)
        assert done.code == 0
        assert all(character.isprintable() or character == "\n" for character in done.out)
        assert "[bold]x[/]" in done.out


@pytest.mark.requirement("cli.project.threads")
@pytest.mark.parametrize("kept", ["file", "journal"])
def test_of_several_threads_one_must_be_chosen(factwire: Factwire, kept: str):
    run = [*turn("t1", title="Nightly \x1b[2J"), *turn("t2", say="Other.")]
    if kept == "file":
        path, name = factwire.file(lines(*run)), str(factwire.folder / "facts.ndjson")
    else:
        path, name = make(factwire.folder / "runs.db", facts(run)), "the journal"
    done = factwire("project", path, "--json")
    *rows, error = done.err.splitlines()
    assert (done.code, done.out) == (2, "")
    assert error == f"error: {name} contains several threads; choose one with --thread ID"
    assert [row.split() for row in sorted(rows)] == [
        ["t1", "11", "Nightly", "\\x1b[2J"],
        ["t2", "11"],
        ["thread", "facts", "title"],
    ]
    chosen = factwire("project", path, "--json", "--thread", "t2")
    assert chosen == (0, snapshot(turn("t2", say="Other.")), "")


@pytest.mark.requirement("cli.project.threads")
@pytest.mark.parametrize("kept", ["file", "journal"])
def test_a_thread_that_is_not_there_is_said_with_those_that_are(factwire: Factwire, kept: str):
    run = turn()
    path = factwire.file(lines(*run)) if kept == "file" else factwire.folder / "runs.db"
    if kept == "journal":
        make(path, facts(run))
    done = factwire("project", path, "--thread", "t9")
    assert (done.code, done.out) == (2, "")
    assert "t1" in done.err
    assert done.err.endswith(" has no thread 't9'\n")


@pytest.mark.requirement("cli.project.threads")
def test_many_threads_are_listed_in_part(factwire: Factwire):
    many = [fact for number in range(130) for fact in turn(f"t{number}")[:1]]
    done = factwire("project", make(factwire.folder / "runs.db", facts(many)))
    assert done.code == 2
    assert "and more" in done.err
    assert len(done.err.splitlines()) == 23


@pytest.mark.requirement("cli.project.threads")
def test_facts_without_a_thread_belong_to_the_only_one(factwire: Factwire):
    opened = {**Recorder(None)("session.created", payload={"title": "Session"}), "sequence": 0}
    alone = [opened, *turn()]
    done = factwire("project", factwire.file(lines(*alone)), "--json")
    assert done.out == snapshot(alone, "t1")
    journal = make(factwire.folder / "runs.db", facts(alone))
    state = msgspec.json.decode(factwire("project", journal, "--json").out)
    assert state["hydration"]["eventCount"] == len(alone)
    several = [opened, *turn(), *turn("t2")]
    done = factwire("project", factwire.file(lines(*several)), "--json", "--thread", "t1")
    assert done.out == snapshot(turn())
    nobodys = turn(None)
    done = factwire("project", factwire.file(lines(*nobodys)), "--json")
    assert done == (0, snapshot(nobodys), "")


@pytest.mark.requirement("cli.project.children")
@pytest.mark.parametrize("kept", ["file", "journal"])
def test_child_threads_are_part_of_their_parent(factwire: Factwire, kept: str):
    run = teamwork()
    if kept == "file":
        path = factwire.file(lines(*run))
    else:
        path = make(factwire.folder / "runs.db", facts(run))
    done = factwire("project", path, "--json", "--thread", "main")
    family = of_family(run)
    assert done == (0, snapshot(in_order(family) if kept == "file" else family), "")
    state = msgspec.json.decode(done.out)
    assert sorted(state["subagents"]["threads"]) == ["reviewer", "writer"]
    assert state["hydration"] | {"eventCount": 11} == state["hydration"]
    listed = factwire("project", path).err
    assert [row.split()[0] for row in listed.splitlines()[1:-1]] in (
        ["main", "other"],
        ["other", "main"],
    )


@pytest.mark.requirement("cli.project.children")
@pytest.mark.parametrize("kept", ["file", "journal"])
def test_a_family_alone_needs_no_choice(factwire: Factwire, kept: str):
    run = of_family(teamwork())
    if kept == "file":
        path = factwire.file(lines(*run))
    else:
        path = make(factwire.folder / "runs.db", facts(run))
    expected = snapshot(in_order(run) if kept == "file" else run)
    assert factwire("project", path, "--json") == (0, expected, "")
    child = [fact for fact in run if fact["threadId"] == "child"]
    done = factwire("project", path, "--json", "--thread", "child")
    assert done == (0, snapshot(child), "")


@pytest.mark.requirement("cli.project.children")
def test_threads_that_name_each_other_are_one_family(factwire: Factwire):
    one, two = Recorder("one"), Recorder("two")
    run = [one("run.status", parentThreadId="two"), two("run.status", parentThreadId="one")]
    own = Recorder("own")("run.status", parentThreadId="own")
    assert factwire("project", factwire.file(lines(*run)), "--json").code == 0
    assert factwire("project", factwire.file(lines(own)), "--json").out == snapshot([own])


@pytest.mark.requirement("cli.project.at")
@pytest.mark.parametrize("at", [0, 1, 5, 7, 11, 99])
def test_a_place_in_a_file_is_the_sequence_of_the_thread(factwire: Factwire, at: int):
    run = turn()
    done = factwire("project", factwire.file(lines(*run)), "--json", "--at", str(at))
    assert (done.code, done.out) == (0, snapshot(run[:at], "t1"))
    swapped = [*run[:3], run[4], run[3], *run[5:]]
    done = factwire("project", factwire.file(lines(*swapped)), "--json", "--at", str(at))
    assert done.out == snapshot(run[:at], "t1")


@pytest.mark.requirement("cli.project.at")
def test_facts_without_a_sequence_of_their_own_stand_where_they_came(factwire: Factwire):
    run = in_order(of_family(teamwork()))
    path = factwire.file(lines(*run))
    for at in range(8):
        beyond = [n for n, it in enumerate(run) if it["threadId"] == "main" and it["sequence"] > at]
        upto = run[: beyond[0]] if beyond else run
        done = factwire("project", path, "--json", "--at", str(at))
        assert done.out == snapshot(upto, "main")


@pytest.mark.requirement("cli.project.at")
def test_a_place_in_a_journal_is_its_seq(factwire: Factwire):
    run = teamwork()
    path = make(factwire.folder / "runs.db", facts(run))
    for at in range(len(run) + 2):
        arguments = ("--thread", "main", "--json", "--at", str(at))
        done = factwire("project", path, *arguments)
        assert (done.code, done.out) == (0, snapshot(of_family(run[:at]), "main"))


class Watched(MemoryJournal):
    """A journal that remembers what it was asked for, and counts what it gave."""

    def __init__(self, content: list[Fact]) -> None:
        super().__init__()
        self._content = content
        self.facts_read: list[Fact] = []
        self.filters: list[Filter | None] = []

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.append(self._content)
        return self

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[FactBatch]:
        self.filters.append(filter)
        async for batch in super().read(after, filter=filter, limit=limit):
            self.facts_read += [fact for _, fact in batch.facts()]
            yield batch


@pytest.mark.requirement("cli.project.journal")
def test_of_a_journal_only_the_family_is_read(factwire: Factwire, monkeypatch: pytest.MonkeyPatch):
    strangers = [fact for number in range(20) for fact in turn(f"s{number}")]
    watched = Watched(facts([*strangers[:100], *teamwork(), *strangers[100:]]))

    def open_watched_journal(_: str) -> Watched:
        return watched

    monkeypatch.setattr(memory_journal, "open_memory", open_watched_journal)
    done = factwire("project", "memory:", "--json", "--thread", "main")
    assert done == (0, snapshot(of_family(teamwork())), "")
    assert None not in watched.filters
    # Of a stranger only the first fact is looked at, to see whose child it is.
    strange = [fact.id for fact in watched.facts_read if fact.thread_id not in FAMILY]
    assert len(strange) == len(set(strange)) <= 21


@pytest.mark.requirement("cli.project.empty")
def test_input_without_facts_is_an_empty_state_and_a_note(factwire: Factwire):
    path = make(factwire.folder / "runs.db")
    for arguments, name in (
        (("-",), "standard input"),
        ((factwire.file("\n\n"),), str(factwire.folder / "facts.ndjson")),
        ((factwire.file("[]", "array"),), str(factwire.folder / "array")),
        ((path,), "the journal"),
    ):
        done = factwire("project", *arguments, "--json")
        assert done == (0, snapshot([]), f"note: {name} contains no facts\n")
        shown = factwire("project", *arguments)
        assert shown.code == 0
        assert "status  · idle" in shown.out


@pytest.mark.requirement("cli.project.invalid")
def test_facts_that_break_rules_are_shown_as_far_as_that_goes(factwire: Factwire):
    run = turn()
    del run[5]["toolCallId"]
    run[9]["eventClass"] = "never.heard.of"
    run[8]["payload"] = {"summary": 5, "token": "x"}
    path = factwire.file(lines(*run))
    done = factwire("project", path, "--json")
    run[8]["payload"]["token"] = "[redacted]"
    remark = f"note: secrets_redacted: {path}: 1 secret was replaced by [redacted]\n"
    assert done == (0, snapshot(run), remark)
    remarks = msgspec.json.decode(done.out)["diagnostics"]["items"]
    codes = {remark["code"] for remark in remarks.values()}
    assert {"missing_scope_id", "unknown_event_type"} <= codes


@pytest.mark.requirement("cli.project.unreadable")
@pytest.mark.parametrize("verb", ["project", "play"])
def test_what_is_no_fact_is_named_with_its_place(factwire: Factwire, verb: str):
    good = lines(turn()[0])
    broken = factwire(verb, factwire.file(good + "\n{\n"))
    assert (broken.code, broken.out, broken.err.count("\n")) == (2, "", 1)
    assert broken.err.startswith(f"error: {factwire.folder / 'facts.ndjson'}: line 3: not JSON")
    missing = factwire(verb, factwire.file(good + '{"id":"x"}\n'))
    assert (missing.code, missing.out) == (2, "")
    assert "facts.ndjson: line 2: schema_mismatch at $.kind: " in missing.err
    array = factwire(verb, factwire.file(msgspec.json.encode([turn()[0], 5])))
    assert (array.code, array.out) == (2, "")
    assert "facts.ndjson: fact 2: schema_mismatch at $: " in array.err
    assert factwire(verb, factwire.folder / "none").err.endswith(" does not exist\n")
    assert factwire(verb, "mysql://me:hunter2@x/y").code == 2
    assert "hunter2" not in factwire(verb, "mysql://me:hunter2@x/y").err


@pytest.mark.requirement("cli.project.unreadable")
@pytest.mark.parametrize("verb", ["project", "play"])
def test_a_damaged_journal_is_one_line_with_its_code(factwire: Factwire, verb: str):
    path = make(factwire.folder / "runs.db", facts(turn())[:5], facts(turn())[5:])
    damage(path, 6)
    done = factwire(verb, path)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: journal_corrupt: ")
    assert done.err.count("\n") == 1


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("cli.project.constant-memory")
def test_a_longer_journal_takes_no_more_memory(tmp_path: Path):
    from tests.cli.test_memory import peak_memory

    peaks: list[int] = []
    for megabytes in (40, 160):
        path = tmp_path / f"{megabytes}.db"
        asyncio.run(write_output(path, megabytes))
        peak, out = peak_memory("project", path, "--json")
        assert msgspec.json.decode(out)["hydration"]["status"] == "live"
        peaks.append(peak)
        path.unlink()
    small, large = peaks
    assert large <= small * 1.5 + 16 * 1024


async def write_output(path: Path, megabytes: int) -> None:
    """One tool with so much output, of which a state keeps a bounded part."""
    from factwire.journal import open_journal

    record = Recorder("t1")
    piece = {"delta": "word " * 1_600}
    record("turn.started")
    record("tool.started", toolCallId="call")
    async with open_journal(f"sqlite:{path}") as journal:
        for _ in range(megabytes):
            for _ in range(125):
                record("tool.output.delta", toolCallId="call", payload=piece)
            await journal.append(facts([fact for fact in record.facts if fact]))
            record.facts = [{}] * len(record.facts)


@pytest.mark.requirement("cli.project.compacted")
def test_a_compacted_journal_shows_what_the_whole_one_did(factwire: Factwire):
    path = factwire.folder / "journal.db"
    make(path, [decode_fact(line) for line in FIRST_TURN.read_bytes().splitlines()])
    whole = msgspec.json.decode(factwire("project", path, "--json").out)
    assert factwire("journal", "compact", path).code == 0
    left = msgspec.json.decode(factwire("project", path, "--json").out)

    for count in ("received", "eventCount"):
        assert whole["hydration"].pop(count) > left["hydration"].pop(count)
    assert left == whole


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize("lost", [2, 5, 8])
@pytest.mark.parametrize("repair", [{}, {"fromSequence": 1, "toSequence": 11}], ids=str)
def test_a_file_that_lost_a_fact_reads_whole_in_no_command(
    factwire: Factwire, lost: int, repair: Wire
):
    run = turn()
    tail = {**run[-1], "id": "repaired", "sequence": len(run) + 1, "payload": repair}
    whole = [*run, {**tail, "eventClass": "stream.repair.completed", "title": "Repaired"}]
    cut = [value for value in reversed(whole) if value["sequence"] != lost]
    path = factwire.file(lines(*cut), "cut.ndjson")
    complete = factwire.file(lines(*whole), "whole.ndjson")
    state = msgspec.json.decode(factwire("project", path, "--json").out)
    gaps = [{"fromSequence": lost, "toSequence": lost}]
    assert (state["hydration"]["status"], state["hydration"]["gaps"]) == ("degraded", gaps)
    assert "  degraded  " in factwire("play", path).out.splitlines()[-1]
    assert "degraded: some facts are missing" in factwire("diff", path, complete).out
    issues = factwire("validate", path)
    assert (issues.code, "sequence_gap" in issues.out + issues.err) == (1, True)
    for shape in ("facts", "runtime-event", "ui"):
        again = factwire.file(factwire("convert", path, "--to", shape).out, "again.ndjson")
        converted = msgspec.json.decode(factwire("project", again, "--json").out)
        assert (shape, converted["hydration"]["gaps"]) == (shape, gaps)
