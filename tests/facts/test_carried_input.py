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
    "asset ref": ({"type": "image", "assetRef": "file:///x.png"}, ".assetRef", S),
    "asset ref with data": ({"type": "audio", "asset_ref": f"data:audio/wav;base64,{PNG}"},
                            ".asset_ref", L),
    "relative path": ({"type": "file", "path": "./x.png"}, ".path", S),
    "file url": ({"type": "input_file", "file_url": "file:///x.pdf"}, ".file_url", S),
    "thumbnail": ({"type": "video", "ref": "asset:1", "thumbnailUri": "/tmp/x.png"},
                  ".thumbnailUri", S),
    "OpenAI audio": ({"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
                     ".input_audio.data", S),
    "OpenAI image": ({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                     ".image_url", L),
    "OpenAI chat image": ({"type": "image_url", "image_url": {"url": f"data:image/png,{PNG}"}},
                          ".image_url.url", L),
    "OpenAI file": ({"type": "file", "file": {"filename": "a", "file_data": PNG}},
                    ".file.file_data", S),
    "OpenAI input file": ({"type": "input_file", "filename": "a", "file_data": PNG},
                          ".file_data", S),
    "Anthropic document": ({"type": "document", "source": {"type": "base64", "data": PNG,
                            "media_type": "application/pdf"}}, ".source.data", S),
    "Anthropic url": ({"type": "image", "source": {"type": "url", "url": "file:///x"}},
                      ".source.url", S),
    "AI SDK image": ({"type": "image", "image": PNG}, ".image", S),
    "AI SDK image url": ({"type": "image", "image": f"data:image/png;base64,{PNG}"}, ".image", L),
    "AI SDK bytes": ({"type": "image", "image": [137, 80, 78]}, ".image", S),
    "AI SDK file": ({"type": "file", "mediaType": "audio/wav", "url": "data:audio/wav,x"},
                    ".url", L),
    "AI SDK output": ({"type": "image-data", "data": PNG}, ".data", S),
    "A2A bytes": ({"kind": "file", "file": {"bytes": PNG, "mimeType": "image/png"}},
                  ".file.bytes", S),
    "A2A uri": ({"kind": "file", "file": {"uri": "file:///x.png"}}, ".file.uri", S),
    "A2A raw": ({"raw": PNG, "mediaType": "image/png"}, ".raw", S),
    "AG-UI binary": ({"type": "binary", "mimeType": "image/png", "data": PNG}, ".data", S),
    "AG-UI source": ({"type": "audio", "source": {"type": "data", "value": PNG,
                      "mimeType": "audio/wav"}}, ".source.value", S),
    "AG-UI url": ({"type": "video", "source": {"type": "url", "value": "file:///x.mp4"}},
                  ".source.value", S),
    "MCP audio": ({"type": "audio", "data": PNG, "mimeType": "audio/wav"}, ".data", S),
    "ACP image": ({"type": "image", "uri": "/tmp/x.png", "mimeType": "image/png"}, ".uri", S),
    "OpenCode file": ({"type": "file", "mime": "image/png", "url": "file:///x.png"}, ".url", S),
    "Gemini data": ({"inlineData": {"mimeType": "image/png", "data": PNG}}, ".inlineData.data", S),
    "Gemini file": ({"fileData": {"fileUri": "file:///x.png"}}, ".fileData.fileUri", S),
}  # fmt: skip
"""Parts of every protocol that Factwire speaks, each with bytes, a data address or a local path."""

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
    "a message of a turn": ("turn.submitted", {"payload": {"message": {"content": ["{}"]}}},
                            P + ".message.content[0]"),
    "a prompt of a model": ("model.requested", {"payload": {"messages": [{"content": ["{}"]}]}},
                            P + ".messages[0].content[0]"),
    "input of a task": ("task.created", {"payload": {"input": ["{}"]}}, P + ".input[0]"),
    "a snapshot": ("snapshot.updated", {"payload": {"messages": [{"parts": ["{}"]}]}},
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
        {"type": "image", "image": "https://example.org/x.png"},
        {"type": "audio", "source": {"type": "url", "value": "https://example.org/x.wav"}},
        {"kind": "data", "data": {"path": "/repo", "data": "words"}},
        {"kind": "file", "file": {"uri": "asset:1", "name": "/x.png"}},
        {"type": "tool_use", "name": "read", "input": {"type": "file", "path": "/repo/x.py"}},
        {"type": "answer", "updatedInput": {"file_path": "/repo/x.py"}, "path": "/repo"},
    ],
)
def test_refs_addresses_words_and_arguments_are_not(place: str, part: dict[str, Any]):
    if part.get("type") == "answer" and "answer" not in place:
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
