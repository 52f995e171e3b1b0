"""Input that facts carry, wherever it stands, is held to the rules of `read_input`."""

from typing import Any

import pytest

from factwire.facts import Intake, InvalidFacts, inspect_fact, read_input
from tests.facts.samples import EXTRA_IDS, wire

PNG = "iVBORw0KGgo="
S, L = "schema_mismatch", "large_payload_inline"
P = "$.payload"

KINDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "path": ({"type": "asset", "kind": "image", "ref": "/home/me/x.png"}, ".ref", S),
    "home path": ({"type": "asset", "kind": "image", "ref": "~/x.png"}, ".ref", S),
    "drive path": ({"type": "asset", "kind": "image", "ref": "C:\\x.png"}, ".ref", S),
    "upward path": ({"type": "asset", "kind": "image", "ref": "a/../../x"}, ".ref", S),
    "file address": ({"type": "workspace", "ref": "file:///x.png"}, ".ref", S),
    "local image": ({"type": "localImage", "path": "/tmp/x.png"}, ".path", S),
    "image url": ({"type": "image_url", "image_url": {"url": "file:/x"}}, ".image_url.url", S),
    "resource link": ({"type": "resource_link", "uri": "file:///x"}, ".uri", S),
    "resource": ({"type": "resource", "resource": {"uri": "u:1", "mimeType": "image/png",
                  "blob": PNG}}, ".resource.blob", S),
    "data address": ({"type": "asset", "kind": "image", "ref": f"data:image/png;base64,{PNG}"},
                     ".ref", L),
    "data url": ({"type": "image", "url": f"data:image/png;base64,{PNG}"}, ".url", L),
    "data of an image": ({"type": "image", "data": PNG, "mimeType": "image/png"}, ".data", S),
    "data of a sound": ({"type": "input_audio", "data": PNG}, ".data", S),
    "data of a file": ({"type": "file", "mediaType": "text/plain", "data": PNG}, ".data", S),
    "bytes": ({"type": "file", "bytes": PNG}, ".bytes", S),
    "numbers": ({"type": "image", "bytes": [137, 80, 78]}, ".bytes", S),
    "source": ({"type": "image", "source": {"type": "base64", "data": PNG}}, ".source.data", S),
}  # fmt: skip

PLACES: dict[str, tuple[str, Any, str]] = {
    "input of a turn": ("turn.submitted", {"payload": {"input": ["{}"]}}, P + ".input[0]"),
    "input of a started turn": ("turn.started", {"payload": {"input": ["{}"]}}, P + ".input[0]"),
    "input beside the payload": ("turn.submitted", {"input": ["{}"]}, "$.input[0]"),
    "parts of a turn": ("turn.submitted", {"payload": {"parts": ["{}"]}}, P + ".parts[0]"),
    "content of a turn": ("turn.submitted", {"payload": {"content": ["{}"]}}, P + ".content[0]"),
    "attachments": ("turn.submitted", {"attachments": ["{}"]}, "$.attachments[0]"),
    "attachments of a payload": ("run.status", {"payload": {"attachments": ["{}"]}},
                                 P + ".attachments[0]"),
    "a queued turn": ("queue.changed", {"payload": {"queuedTurns": [{"input": ["{}"]}]}},
                      P + ".queuedTurns[0].input[0]"),
    "a turn that is queued": ("queue.changed", {"payload": {"input": ["{}"]}}, P + ".input[0]"),
    "an answer": ("action.resolved", {"payload": {"response": "{}"}}, P + ".response"),
    "parts of an answer": ("action.resolved", {"payload": {"response": {"content": ["{}"]}}},
                           P + ".response.content[0]"),
    "a message": ("messages.snapshot", {"payload": {"messages": [{"parts": ["{}"]}]}},
                  P + ".messages[0].parts[0]"),
    "input of a subagent": ("subagent.input", {"payload": {"input": ["{}"]}}, P + ".input[0]"),
}  # fmt: skip


def fill(value: Any, part: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: fill(item, part) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [fill(item, part) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return part if value == "{}" else value


def carry(place: str, part: dict[str, Any]) -> dict[str, Any]:
    event_class, fields, _ = PLACES[place]
    return wire(event_class, 1, **EXTRA_IDS, **fill(fields, part))


@pytest.mark.requirement("inputs.carried")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_content_and_paths_are_refused_in_every_place_as_in_an_input(place: str, kind: str):
    part, field, code = KINDS[kind]
    issues = [(issue.code, issue.path) for issue in inspect_fact(carry(place, part))]
    assert issues == [(code, PLACES[place][2] + field)]
    with pytest.raises(InvalidFacts) as refused:
        Intake().feed(carry(place, part))
    assert [(issue.code, issue.path) for issue in refused.value.issues] == issues
    with pytest.raises(InvalidFacts) as unread:
        read_input([part], PLACES[place][2].removesuffix("[0]"))
    assert unread.value.issues[0].code == code


@pytest.mark.requirement("inputs.carried")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "/etc/passwd and data:text/plain;base64,aGk="},
        {"type": "asset", "kind": "image", "ref": "asset:1", "name": "/x.png", "bytes": 3},
        {"type": "workspace", "ref": "product:1", "title": "Mug"},
        {"type": "image", "url": "https://example.org/x.png"},
        {"type": "resource_link", "uri": "https://example.org/x", "name": "x"},
        {"type": "answer", "updatedInput": {"file_path": "/repo/x.py"}, "path": "/repo"},
    ],
)
def test_refs_addresses_words_and_arguments_are_not(place: str, part: dict[str, Any]):
    if part["type"] == "answer" and "answer" not in place:
        return
    assert inspect_fact(carry(place, part)) == []


@pytest.mark.requirement("inputs.carried")
@pytest.mark.parametrize("event_class", ["tool.started", "tool.result", "command.started"])
def test_what_a_tool_is_given_and_gives_is_its_own(event_class: str):
    payload = {"input": [{"type": "file", "path": "/repo/x.py"}], "args": {"path": "/repo/x.py"}}
    assert inspect_fact(wire(event_class, 1, **EXTRA_IDS, payload=payload)) == []


@pytest.mark.requirement("inputs.carried")
@pytest.mark.parametrize("text", ["/home/me/x.png", "file:///x", "..\\x"])
def test_an_attachment_that_is_a_plain_path_is_refused(text: str):
    fields = {"payload": {"attachments": [text]}, "attachments": [text]}
    issues = inspect_fact(wire("run.status", 1, **fields))
    assert [(issue.code, issue.path) for issue in issues] == [
        ("schema_mismatch", P + ".attachments[0]"),
        ("schema_mismatch", "$.attachments[0]"),
    ]
