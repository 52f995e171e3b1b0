"""Observing a program: where its facts go, and that it never pays for it."""

import asyncio
import logging
import subprocess
import sys
import threading
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

import factwire
from factwire.facts import Fact
from factwire.journal import JournalUrlError
from factwire.sources.kit.observed_run import ObservedFactBuilder, ObservedRun
from factwire.sources.observe import AlreadyObserving, NoPlace, NothingToObserve, observer
from factwire.sources.observe.outbox import Outbox, PrepareFact, SinkRefused, SinkUnavailable
from tests.edge.edges import TOKEN, running_edge
from tests.sources.observed import PATIENCE, ObservedJournal, by_thread, end, payloads_of, texts

SECRET = "sk-proj-" + "a1B2c3D4" * 6


def make_agent(text: str = "Hello there.") -> Agent[None, str]:
    return Agent(TestModel(custom_output_text=text))


@pytest.mark.asyncio
@pytest.mark.requirement("sources.observe.edge")
@pytest.mark.requirement("sources.observe.redaction")
async def test_facts_reach_an_edge_without_the_secrets_in_them(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        observed = factwire.observe(edge=edge.url, token=TOKEN, thread="chat-1")
        await make_agent(f"the key is {SECRET}").run("tell me")
        assert await asyncio.to_thread(observed.close, PATIENCE)
        page = await edge.get("/v1/facts", threadId="chat-1", limit=100)
        state = await edge.get("/v1/threads/chat-1/projection")
    assert "turn.completed" in str(page)
    assert "the key is" in str(state)
    assert SECRET not in f"{page}{state}"


PROGRAM = """
import asyncio, os, sys
import factwire

factwire.observe(edge=sys.argv[1], token=sys.argv[2])
assert not {"agents", "langgraph", "pydantic_ai"} & set(sys.modules), "imported for nothing"
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

def answer(text):
    asyncio.run(Agent(TestModel(custom_output_text=text)).run("go"))

answer("parent")
child = os.fork()
if child:
    os.waitpid(child, 0)
    raise ZeroDivisionError
answer("child")
"""


@pytest.mark.asyncio
@pytest.mark.requirement("sources.observe.exit")
async def test_a_program_that_ends_anyhow_and_one_that_forks_lose_nothing(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", PROGRAM, edge.url, TOKEN],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        page = await edge.get("/v1/facts", limit=1000)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "AssertionError" not in done.stderr
    outcome = [
        item["fact"]["payload"]
        for item in page["items"]
        if item["fact"]["eventClass"] == "model.completed"
    ]
    assert sorted(each["text"] for each in outcome) == ["child", "parent"]


class Gate:
    """A place that nobody can reach until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.tried = threading.Event()
        self.facts: list[Fact] = []
        self.refuses: set[str | None] = set()

    def make_reader(self) -> PrepareFact:
        return lambda fact: [fact]

    def send(self, facts: list[Fact]) -> None:
        self.tried.set()
        if not self.open.is_set():
            raise SinkUnavailable("nobody is there")
        if self.refuses & {fact.thread_id for fact in facts}:
            raise SinkRefused("not these")
        self.facts += facts

    def close(self) -> None:
        self.open.clear()


def start_run(outbox: Outbox, thread_id: str, prompt: str = "go") -> ObservedRun:
    telling = ObservedFactBuilder(
        "pydantic-ai", thread_id=thread_id, runtime_id="r", parent=None, shared=False
    )
    run = ObservedRun("pydantic-ai", telling, outbox)
    run.record({"type": "run.started", "input": prompt})
    return run


def speak(run: ObservedRun, count: int) -> None:
    for place in range(count):
        part = {"part_kind": "text", "content": "x" * 100}
        run.record({"event_kind": "part_start", "index": place, "part": part})
        run.record({"event_kind": "part_end", "index": place, "part": part})


@pytest.mark.requirement("sources.observe.bounded")
def test_what_does_not_fit_while_nothing_can_be_sent_is_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
):
    gate = Gate()
    outbox = Outbox(lambda: gate, waiting_bytes=10_000)
    first = start_run(outbox, "first")
    assert gate.tried.wait(PATIENCE)
    speak(first, 1_000)
    late = start_run(outbox, "late", "more than fits" * 100)
    speak(late, 1)
    gate.open.set()
    assert outbox.flush(PATIENCE)
    speak(first, 1)
    first.end({"type": "run.completed"})
    assert outbox.close(PATIENCE)
    [facts] = by_thread(gate.facts)
    outcome = [each["count"] for each in payloads_of(facts, "runtime.warning")]
    assert len(outcome) == 1
    assert len(texts(facts)) < 100 < outcome[0]
    assert end(facts) == "turn.completed"
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len([message for message in warned if "cannot be sent" in message]) == 1


@pytest.mark.requirement("sources.observe.bounded")
def test_a_thread_that_is_refused_costs_the_others_nothing():
    gate = Gate()
    gate.refuses = {"bad"}
    outbox = Outbox(lambda: gate)
    runs = [start_run(outbox, name) for name in ("good", "bad", "better")]
    assert gate.tried.wait(PATIENCE)
    for run in runs:
        speak(run, 1)
        run.end({"type": "run.completed"})
    gate.open.set()
    assert outbox.close(PATIENCE)
    assert {facts[0].thread_id: end(facts) for facts in by_thread(gate.facts)} == {
        "good": "turn.completed",
        "better": "turn.completed",
    }


@pytest.mark.requirement("sources.observe.bounded")
def test_closing_waits_no_longer_than_it_is_told_to():
    gate = Gate()
    outbox = Outbox(lambda: gate)
    start_run(outbox, "first")
    assert gate.tried.wait(PATIENCE)
    assert not outbox.flush(0.0)
    assert not outbox.close(0.0)
    assert gate.facts == []


@pytest.mark.asyncio
@pytest.mark.requirement("sources.observe.harmless")
async def test_a_fault_in_here_is_logged_and_not_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fault(value: object) -> Any:
        raise ZeroDivisionError(value)

    monkeypatch.setattr("factwire.sources.pydantic_ai.observe.to_json", fault)
    with factwire.observe(journal=ObservedJournal(tmp_path).url):
        assert (await make_agent().run("go")).output == "Hello there."
    assert "an event was not observed" in caplog.text


@pytest.mark.asyncio
@pytest.mark.requirement("sources.observe.harmless")
async def test_after_closing_nothing_is_as_if_it_had_been_observed(tmp_path: Path):
    before = Agent.__dict__["iter"]
    place = ObservedJournal(tmp_path)
    with factwire.observe(journal=place.url, sdks=["pydantic-ai"]) as observed:
        assert Agent.__dict__["iter"] is not before
        kept = Agent.__dict__["iter"]
        with pytest.raises(AlreadyObserving):
            factwire.observe(journal=place.url)
        await make_agent().run("go")
    assert observed.close()
    assert Agent.__dict__["iter"] is before
    async with kept(make_agent(), "go") as run:
        assert [node async for node in run]
    assert len(by_thread(await asyncio.to_thread(place.facts))) == 1


def not_there(name: str) -> str:
    raise PackageNotFoundError(name)


@pytest.mark.requirement("sources.observe.errors")
def test_what_cannot_be_observed_is_said_at_once(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(NoPlace):
        factwire.observe()
    with pytest.raises(NoPlace):
        factwire.observe(edge="http://127.0.0.1:1", journal="memory:")
    with pytest.raises(JournalUrlError):
        factwire.observe(journal="nowhere")
    with pytest.raises(ValueError, match="expected SDKs of"):
        factwire.observe(journal="memory:", sdks=["crewai"])
    with pytest.raises(ValueError, match="name of a thread"), factwire.thread(""):
        pass
    monkeypatch.setattr(observer, "version", not_there)
    with pytest.raises(NothingToObserve, match=r"factwire\[openai-agents\]"):
        factwire.observe(journal="memory:")


@pytest.mark.requirement("sources.observe.light")
def test_importing_factwire_imports_nothing_else():
    code = (
        "import sys, factwire; print([m for m in sys.modules if m.startswith('factwire.')]);"
        "print(factwire.observe.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "observe"]
