"""Requests of outside runtimes that meet: on one thread, in one commit, on a journal that fails."""

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factwire.edge.limits import INTAKE_CHECKPOINT, INTAKE_TURN_FACTS
from factwire.edge.operations import outside_intakes
from factwire.edge.operations.outside_intakes import ThreadTrial
from factwire.facts import Fact, Shape, redact_text
from factwire.facts.intake import IntakeResult
from factwire.facts.lifecycle import verify
from factwire.facts.shapes import decode_plain
from factwire.journal import (
    AppendResult,
    Cursor,
    FactBatch,
    Filter,
    Journal,
    JournalUnavailable,
    JournalUnwritable,
)
from tests.edge.edges import RunningEdge, running_edge
from tests.edge.test_outside_facts import TOKENS, joined_text, make_fact

Row = tuple[str, dict[str, Any]]

_threads = count(1)


class WatchedJournal:
    """The journal of an Edge, whose appends wait and fail as a test wants."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.begun = 0
        self.facts_read = 0
        self.changed = asyncio.Event()
        self.opened = asyncio.Event()
        self.outcomes: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> AppendResult:
        outcome = self.outcomes[self.begun] if self.begun < len(self.outcomes) else "written"
        self.begun += 1
        self.changed.set()
        if outcome == "lost":
            await self.opened.wait()
            raise JournalUnwritable("the disk is full")
        # Begun at once, as any journal does: what is begun first is written first.
        appended = asyncio.ensure_future(self._journal.append(batch, expected=expected))
        await self.opened.wait()
        result = await appended
        if outcome == "unanswered":
            raise JournalUnavailable("the connection was lost")
        return result

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[FactBatch]:
        async for batch in self._journal.read(after, filter=filter, limit=limit):
            self.facts_read += len(batch.seqs)
            yield batch

    async def wait_until_begun(self, number: int) -> None:
        while self.begun < number:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 60)


@contextmanager
def watched_journal(edge: RunningEdge) -> Generator[WatchedJournal]:
    intakes = edge.machine.intakes
    journal = intakes.journal
    watched = WatchedJournal(journal)
    intakes.journal = cast("Journal", watched)
    try:
        yield watched
    finally:
        intakes.journal = journal


async def _post(edge: RunningEdge, facts: list[Any]) -> httpx.Response:
    return await edge.http.post("/v1/facts", json=facts)


async def _stored(edge: RunningEdge, thread: str) -> list[dict[str, Any]]:
    page = await edge.get("/v1/facts", threadId=thread, limit=1000)
    return [item["fact"] for item in page["items"]]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.rest.outside-commits")
async def test_requests_of_one_thread_are_on_their_way_together(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        with watched_journal(edge) as journal:
            facts = [make_fact("shared", n, "run.status", {"status": "running"}) for n in range(8)]
            answers = [asyncio.create_task(_post(edge, [fact])) for fact in facts]
            await journal.wait_until_begun(len(facts))
            journal.opened.set()
            statuses = {(await answer).status_code for answer in answers}
        stored = await _stored(edge, "shared")
    assert statuses == {200}
    assert sorted(fact["id"] for fact in stored) == sorted(fact["id"] for fact in facts)
    assert [fact["sequence"] for fact in stored] == [*range(1, 9)]


CHANGED_BY_A_FAILURE: dict[str, tuple[Row, Row, int]] = {
    "refused": (("tool.started", {"toolName": "look"}), ("tool.result", {"output": "x"}), 422),
    "taken": (("turn.completed", {}), ("tool.started", {"toolName": "look"}), 200),
}
"""What comes of a second request when the one that it was judged on is not written."""


@pytest.mark.parametrize("name", CHANGED_BY_A_FAILURE)
@pytest.mark.asyncio
@pytest.mark.requirement("edge.rest.outside-commits")
async def test_what_was_judged_on_a_batch_that_failed_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    first, second, status = CHANGED_BY_A_FAILURE[name]
    take, is_judged = ThreadTrial.take, asyncio.Event()

    def noted(self: ThreadTrial, fact: Fact, shape: Shape) -> list[IntakeResult]:
        if fact.id == f"{name}-3":
            is_judged.set()
        return take(self, fact, shape)

    monkeypatch.setattr(ThreadTrial, "take", noted)
    async with running_edge(tmp_path) as edge:
        await edge.post("/v1/facts", [make_fact(name, 1, "turn.started", {})])
        with watched_journal(edge) as journal:
            journal.outcomes = ["lost"]
            lost = asyncio.create_task(_post(edge, [make_fact(name, 2, *first)]))
            await journal.wait_until_begun(1)
            judged = asyncio.create_task(_post(edge, [make_fact(name, 3, *second)]))
            await asyncio.wait_for(is_judged.wait(), 60)
            journal.opened.set()
            assert (await lost).status_code == 503
            assert (await judged).status_code == status
        stored = await _stored(edge, name)
    assert [fact["id"] for fact in stored] == [f"{name}-1", *([f"{name}-3"] * (status == 200))]


class OpenedIntakes:
    """An Edge between the examples of a law."""

    def __init__(self, runner: asyncio.Runner, edge: RunningEdge) -> None:
        self.runner = runner
        self.edge = edge


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Generator[OpenedIntakes]:
    with asyncio.Runner() as runner:
        manager = running_edge(tmp_path_factory.mktemp("edge"))
        edge = runner.run(manager.__aenter__())
        yield OpenedIntakes(runner, edge)
        runner.run(manager.__aexit__(None, None, None))


def _story(thread: str, data: st.DataObject) -> list[dict[str, Any]]:
    """A turn with calls and a text of words that are or begin secrets; the text has an end."""
    rows: list[Row] = [("turn.started", {})]
    for number in range(data.draw(st.integers(1, 4))):
        call = {"toolCallId": f"c{number}"}
        rows.append(("tool.started", {"toolName": "look", **call}))
        rows += [
            ("model.delta", {"delta": text})
            for text in data.draw(st.lists(st.sampled_from(TOKENS), max_size=4))
        ]
        rows.append(("tool.result", {"output": "done", **call}))
    rows.append(("turn.completed", {"exitCode": 0}))
    facts = [make_fact(thread, number, *row) for number, row in enumerate(rows, 1)]
    for fact in facts:
        del fact["toolCallId"]
    return facts


async def _post_while_failing(
    edge: RunningEdge, requests: list[list[Any]], outcomes: Sequence[str]
) -> list[int]:
    with watched_journal(edge) as journal:
        journal.outcomes = outcomes
        journal.opened.set()
        answers = await asyncio.gather(*(_post(edge, request) for request in requests))
    return [answer.status_code for answer in answers]


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
@pytest.mark.requirement("edge.rest.outside-commits")
@pytest.mark.requirement("edge.rest.outside-text")
def test_a_failing_journal_leaves_whole_batches_of_what_can_have_happened(
    opened: OpenedIntakes, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
):
    """All requests of a story are sent at once, and some batches fail or are written unanswered."""
    monkeypatch.setattr(outside_intakes, "INTAKE_CHECKPOINT", data.draw(st.integers(1, 8)))
    edge, thread = opened.edge, f"failing-{next(_threads)}"
    facts = _story(thread, data)
    requests: list[list[Any]] = []
    while facts:
        size = data.draw(st.integers(1, min(6, len(facts))))
        requests.append(facts[:size])
        facts = facts[size:]
    outcome = st.sampled_from(("written", "written", "lost", "unanswered"))
    outcomes = data.draw(st.lists(outcome, max_size=len(requests)))
    statuses = opened.runner.run(_post_while_failing(edge, requests, outcomes))
    assert set(statuses) <= {200, 422, 503}
    if data.draw(st.booleans()):
        edge.machine.intakes.forget([thread])
    stored = opened.runner.run(_stored(edge, thread))
    ids = {fact["id"] for fact in stored}
    for request, status in zip(requests, statuses, strict=True):
        written = [fact["id"] in ids for fact in request]
        assert all(written) or (status != 200 and not any(written))
    decoded = [decode_plain(_to_json(fact)) for fact in stored]
    assert verify([fact for fact in decoded if fact is not None]) == []
    sent = {fact["id"]: fact["payload"].get("delta", "") for each in requests for fact in each}
    whole = "".join(sent.get(fact["id"], "") for fact in stored)
    if any(fact["eventClass"] == "turn.completed" for fact in stored):
        assert joined_text(stored, "model.delta") == redact_text(whole)[0]


def _to_json(fact: dict[str, Any]) -> bytes:
    return httpx.Request("POST", "http://edge", json=fact).content


@pytest.mark.asyncio
@pytest.mark.requirement("edge.rest.outside-checkpoints")
async def test_a_long_thread_is_known_again_from_its_checkpoint(tmp_path: Path):
    def make_turn(number: int) -> list[dict[str, Any]]:
        rows: list[Row] = [("tool.started", {"toolName": "look"}), ("tool.result", {"output": "x"})]
        turn: list[Row] = [("turn.started", {}), *(rows * 48), ("turn.completed", {})]
        facts = [make_fact("long", number * 100 + n, *row) for n, row in enumerate(turn)]
        return [fact | {"turnId": f"long-turn-{number}"} for fact in facts]

    async with running_edge(tmp_path) as edge:
        intakes = edge.machine.intakes
        for number in range(3 * INTAKE_CHECKPOINT // 98):
            await edge.post("/v1/facts", make_turn(number))
            intakes.forget(["long"] if number % 7 == 0 else [])
        intakes.forget(["long"])
        with watched_journal(edge) as journal:
            journal.opened.set()
            ended = make_fact("long", 9_999, "turn.failed", {"failureCategory": "x"})
            refused = await _post(edge, [ended | {"turnId": "long-turn-0"}])
        assert refused.json()["issues"][0]["code"] == "turn_terminal_repeated"
        assert journal.facts_read < INTAKE_CHECKPOINT + 98


@pytest.mark.asyncio
@pytest.mark.requirement("edge.rest.outside-loop")
async def test_no_batch_keeps_the_event_loop_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Counted is what is judged between two turns of the event loop, on its own thread."""
    turns, judged = [0], dict[int, list[int]]()
    take, loop_thread = ThreadTrial.take, threading.get_ident()

    def counted(self: ThreadTrial, fact: Fact, shape: Shape) -> list[IntakeResult]:
        if threading.get_ident() == loop_thread:
            judged.setdefault(turns[0], []).append(len(str(fact.payload)))
        return take(self, fact, shape)

    async def turn() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(ThreadTrial, "take", counted)
    short = [make_fact("short", n, "model.delta", {"delta": "sk-"}) for n in range(2_000)]
    long = [make_fact("long", n, "model.delta", {"delta": "key: a; " * 6_000}) for n in range(8)]
    async with running_edge(tmp_path) as edge:
        turning = asyncio.create_task(turn())
        for facts in (short, long):
            answer = await edge.http.post("/v1/facts", json=facts)
            assert answer.json()["accepted"] == len(facts)
        turning.cancel()
    assert max(map(len, judged.values())) <= INTAKE_TURN_FACTS
    assert max(map(sum, judged.values())) < 32_000
    assert len(judged) >= len(short) // INTAKE_TURN_FACTS


@pytest.mark.asyncio
@pytest.mark.requirement("edge.rest.outside-without-ids")
async def test_facts_without_ids_are_repeats_only_in_a_retry_of_their_request(tmp_path: Path):
    def make_piece(text: str) -> dict[str, Any]:
        return {
            "type": "model.delta",
            "runtimeId": "my-agent",
            "threadId": "laughing",
            "turnId": "t",
            "messageId": "m",
            "payload": {"delta": text},
        }

    batch = [make_piece("ha"), make_piece("ha")]
    key = {"Idempotency-Key": "laugh-once"}
    async with running_edge(tmp_path) as edge:
        assert (await edge.post("/v1/facts", batch))["accepted"] == 2
        assert (await edge.post("/v1/facts", batch))["accepted"] == 2
        first = (await edge.http.post("/v1/facts", json=batch, headers=key)).json()
    async with running_edge(tmp_path) as edge:
        again = (await edge.http.post("/v1/facts", json=batch, headers=key)).json()
        other = await edge.http.post("/v1/facts", json=[make_piece("ho"), *batch], headers=key)
        await edge.post("/v1/facts", [make_piece("!") | {"type": "turn.completed"}])
        stored = await _stored(edge, "laughing")
    assert again == first | {"accepted": 0, "repeated": 2, "cursor": again["cursor"]}
    assert other.status_code in (409, 422)
    assert "".join(fact["payload"].get("delta", "") for fact in stored[:-1]) == "ha" * 6
