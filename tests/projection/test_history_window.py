"""What a fork brings along: the parent's work, marked as such, of which nothing goes on."""

from pathlib import Path

import msgspec
import pytest

from factwire.facts import decode_fact
from factwire.projection import Projection, conversation, project
from factwire.projection.history_window import build_forked_history
from factwire.projection.messages import TextPart
from tests.projection.fact_maker import FactMaker, WatchedProjection, as_json, codes

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "streams"
STREAMS = sorted(path.stem for path in FOLDER.glob("*.ndjson"))


@pytest.mark.requirement("projection.forked-history")
@pytest.mark.parametrize("name", STREAMS)
def test_a_fork_of_any_stream_shows_its_work_and_nothing_of_it_is_open(name: str):
    lines = (FOLDER / f"{name}.ndjson").read_bytes().splitlines()
    parent = project(decode_fact(line) for line in lines)
    history = as_json(build_forked_history(parent, conversation(parent)))
    seen = WatchedProjection(Projection("fork"))
    tell = FactMaker(thread="fork")
    window = {**history, "originThreadId": parent.thread_id}
    seen.apply(tell("thread.forked", parentThreadId=parent.thread_id))
    seen.apply(tell("history.window.loaded", payload=window))
    seen.apply(tell("history.window.loaded", payload=window))
    fork = seen.state

    origins = {row.origin_thread_id for row in (*fork.tools.values(), *fork.artifacts.values())}
    assert origins | {row.origin_thread_id for row in fork.messages} <= {parent.thread_id}
    own = [tool for tool in parent.tools.values() if tool.subagent_id is None]
    if conversation(parent):
        assert {tool.tool_call_id for tool in own} <= fork.tools.keys()
    for key, tool in fork.tools.items():
        before = parent.tools[key]
        assert (tool.output_ref, tool.ref_ids) == (before.output_ref, before.ref_ids)
        assert tool.state == before.state or (tool.state, tool.unclosed) == ("stale", True)
    for key, artifact in fork.artifacts.items():
        before = parent.artifacts[key]
        assert (artifact.content_ref, artifact.versions) == (before.content_ref, before.versions)
    assert [message.status for message in fork.messages if message.status == "streaming"] == []
    final = {
        str(part.text)
        for message in parent.messages
        for part in message.parts
        if isinstance(part, TextPart) and part.state == "final"
    }
    for message in fork.messages:
        for part in message.parts:
            if isinstance(part, TextPart) and part.state == "final":
                assert str(part.text) in final
    assert (fork.runtime.status, fork.actions, codes(fork)) == ("idle", {}, [])
    assert Projection.restore(seen.projection.checkpoint()).snapshot() == seen.projection.snapshot()


@pytest.mark.requirement("projection.forked-history")
def test_a_row_that_cannot_be_read_is_remarked_and_the_others_are_taken():
    tell = FactMaker()
    call = {"toolCallId": "call", "state": "running"}
    window = {"originThreadId": "parent", "toolCalls": [{"state": "running"}, call]}
    seen = WatchedProjection()
    seen.apply(tell("history.window.loaded", payload=msgspec.to_builtins(window)))
    assert codes(seen.state) == ["unreadable_row"]
    tool = seen.state.tools["call"]
    assert (tool.unclosed, tool.origin_thread_id) == (True, "parent")
    seen.apply(tell("turn.started", turnId="turn"))
    seen.apply(tell("turn.canceled", turnId="turn"))
    assert seen.state.tools["call"].state == "stale"


@pytest.mark.requirement("projection.forked-history")
def test_calls_that_a_fork_brings_along_keep_their_places_when_they_begin_anew():
    tell = FactMaker(thread="fork")
    rows = [{"toolCallId": key, "state": "output-available", "outputCharacters": 0} for key in "ab"]
    facts = [
        tell("history.window.loaded", originThreadId="parent", toolCalls=rows),
        tell("turn.started", turnId="turn"),
        *(tell("tool.started", turnId="turn", toolCallId=key) for key in "cba"),
        tell("turn.completed", turnId="turn"),
    ]
    straight, restored = Projection("fork"), Projection("fork")
    for fact in facts:
        straight.apply(fact)
        restored = Projection.restore(restored.checkpoint())
        restored.apply(fact)
    assert straight.snapshot() == restored.snapshot()
    assert [item.subject for item in straight.state.diagnostics.items.values()] == ["a", "b", "c"]
