"""A2A's responses: what recordings do not show."""

from pathlib import Path
from typing import Any

import pytest

from factwire.projection import project, transcript
from factwire.projection.messages import TextPart
from factwire.sources import convert_recording, find_source
from tests.sources.recordings import FOLDER, facts_of, screen_of
from tests.sources.streams import classes, facts_from

SOURCE = "a2a"


def status(state: str, text: str | None = None) -> dict[str, Any]:
    payloads: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if text:
        payloads["message"] = {"messageId": f"m-{state}", "parts": [{"text": text}]}
    return {"statusUpdate": {"taskId": "t1", "contextId": "x", "status": payloads}}


@pytest.mark.requirement("sources.a2a.states")
@pytest.mark.parametrize(
    ("state", "turn", "task"),
    [
        ("COMPLETED", "completed", "completed"),
        ("FAILED", "failed", "failed"),
        ("REJECTED", "failed", "failed"),
        ("CANCELED", "canceled", "failed"),
        ("WORKING", "failed", "failed"),
        ("INPUT_REQUIRED", "completed", "failed"),
        ("AUTH_REQUIRED", "completed", "failed"),
    ],
)
def test_a_remote_task_ends_its_turn_as_its_state_says(state: str, turn: str, task: str):
    facts = facts_from(SOURCE, status("SUBMITTED"), status(state))
    assert screen_of(facts)["status"] == turn
    assert project(facts).tasks["t1"].status == task


@pytest.mark.requirement("sources.a2a.states")
def test_a_task_that_is_asked_for_as_it_stands_is_told_whole():
    artifact = {"artifactId": "a", "name": "a.txt", "parts": [{"text": "all"}]}
    task = {"id": "t1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [artifact]}
    facts = facts_from(SOURCE, {"task": task})
    assert screen_of(facts)["status"] == "completed"
    assert classes(facts, "artifact.") == ["artifact.changed"]


@pytest.mark.requirement("sources.a2a.states")
def test_an_error_of_the_envelope_fails_the_turn_and_odd_responses_are_warnings():
    facts = facts_from(
        SOURCE, {"odd": {}}, status("ODD"), {"error": {"code": -32001, "message": "gone"}}
    )
    screen = screen_of(facts)
    assert screen["status"] == "failed"
    assert screen["warnings"] == ["unknown_source_item"] * 2


@pytest.mark.requirement("sources.a2a.teammate")
def test_a_remote_agent_has_a_transcript_of_its_own():
    facts = facts_from(SOURCE, status("WORKING", "On it."), status("COMPLETED", "Done."))
    state = project(facts)
    payloads = [
        str(part.text)
        for message in transcript(state, "t1")
        for part in message.parts
        if isinstance(part, TextPart)
    ]
    assert payloads == ["On it.", "Done."]
    assert screen_of(facts)["conversation"] == []


@pytest.mark.requirement("sources.a2a.teammate")
def test_a_message_without_a_task_is_the_answer():
    message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Hello."}]}
    screen = screen_of(facts_from(SOURCE, {"message": message}))
    assert (screen["status"], screen["conversation"]) == ("completed", [["assistant", "Hello."]])


@pytest.mark.requirement("sources.a2a.teammate")
def test_both_bindings_tell_the_same():
    bare, wrapped = (facts_of(FOLDER / SOURCE / name) for name in ("artifact.sse", "rpc.sse"))
    assert [fact.event_class for fact in bare] == [fact.event_class for fact in wrapped]


@pytest.mark.requirement("sources.a2a.artifacts")
def test_the_pieces_of_an_artifact_are_one_content():
    kept: list[bytes] = []

    def keep(content: bytes) -> str:
        kept.append(content)
        return f"raw:{len(kept)}"

    path: Path = FOLDER / SOURCE / "artifact.sse"
    lines = path.read_bytes().splitlines(keepends=True)
    facts = list(convert_recording(find_source(SOURCE), lines, thread_id="t", keep=keep))
    assert kept == [b"# Report\nAll is well.\n"]
    whole = [fact for fact in facts if fact.payload.get("contentRef") == "raw:1"]
    assert [fact.artifact_id for fact in whole] == ["report"]


@pytest.mark.requirement("sources.a2a.artifacts")
def test_parts_that_are_no_text_are_refs():
    parts = [{"raw": "aGk="}, {"url": "https://example.org/x"}, {"data": {"points": [1]}}]
    update = {"taskId": "t1", "artifact": {"artifactId": "a", "parts": parts}}
    facts = facts_from(SOURCE, {"artifactUpdate": update}, status("COMPLETED"))
    draft = next(fact for fact in facts if fact.event_class == "artifact.changed")
    assert len(draft.ref_ids) == 3
    assert not any("aGk=" in str(fact.payload) for fact in facts)


def adk_part(kind: str, **data: Any) -> dict[str, Any]:
    return {"data": data, "metadata": {"adk_type": kind}}


def working(*parts: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    update = status("WORKING")
    payloads = update["statusUpdate"]["status"]
    payloads["message"] = {"messageId": "m", "parts": list(parts)}
    update["statusUpdate"]["metadata"] = metadata
    return update


@pytest.mark.requirement("sources.a2a.data")
def test_calls_results_thoughts_and_usage_of_adk_are_told_once():
    call = adk_part("function_call", id="c", name="weather", args={"city": "Bonn"})
    result = adk_part("function_response", id="c", name="weather", response={"sky": "clear"})
    thought = {"text": "Hm.", "metadata": {"adk_thought": True}}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    spent = {"adk_usage_metadata": usage, "adk_event_id": "e"}
    artifact = {"artifactId": "a", "parts": [call, result, {"text": "Clear."}]}
    last = {"artifactUpdate": {"taskId": "t1", "artifact": artifact, "lastChunk": True}}
    facts = facts_from(
        SOURCE,
        status("SUBMITTED"),
        working(thought, call, **spent),
        working(result, **spent),
        last,
        status("COMPLETED", "Clear."),
    )

    state = project(facts)
    assert [(each.tool_name, each.args, each.output) for each in state.tools.values()] == [
        ("weather", {"city": "Bonn"}, {"sky": "clear"})
    ]
    assert len(classes(facts, "tool.started")) == len(classes(facts, "tool.result")) == 1
    assert (state.metrics.usage.records, state.metrics.usage.total_tokens) == (1, 10)
    assert len(classes(facts, "reasoning.delta")) == 1
    assert "Hm." not in str(screen_of(facts)["conversation"])


@pytest.mark.requirement("sources.a2a.data")
def test_data_that_nobody_knows_is_an_artifact():
    facts = facts_from(SOURCE, working({"data": {"rows": [1]}}), status("COMPLETED"))
    (artifact,) = project(facts).artifacts.values()
    assert (artifact.kind, artifact.content_ref is not None) == ("data", True)
