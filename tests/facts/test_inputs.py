"""What a person gives an agent: text inline, everything else by ref."""

from typing import Any

import pytest

from factwire.facts import (
    AssetInput,
    CapabilityInput,
    InputPart,
    InvalidFacts,
    TextInput,
    WorkspaceInput,
    input_issues,
    read_input,
    write_input,
)

PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": "Look at this:"},
    *(
        {"type": "asset", "kind": kind, "ref": f"asset:{kind}-1"}
        for kind in ("image", "audio", "video", "document")
    ),
    {
        "type": "asset",
        "kind": "image",
        "ref": "asset:2",
        "mediaType": "image/png",
        "name": "a.png",
        "bytes": 3,
    },
    {"type": "workspace", "ref": "product:1", "objectType": "product", "title": "Mug"},
    {"type": "capability", "ref": "capability:1", "purpose": "read", "expiresAt": "2026-06-10"},
]


def find_issues(*parts: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidFacts) as caught:
        read_input(list(parts))
    return [(issue.code, issue.path) for issue in caught.value.issues]


@pytest.mark.requirement("inputs.text")
@pytest.mark.parametrize("text", ["", "hello", '{"type": "asset"}', "/etc/passwd"])
def test_plain_text_is_one_part_as_it_was_written(text: str):
    assert read_input(text) == (TextInput(text=text),)


@pytest.mark.requirement("inputs.assets")
@pytest.mark.requirement("inputs.workspace")
@pytest.mark.requirement("inputs.capabilities")
def test_parts_read_and_written_are_the_same():
    parts = read_input(PARTS)
    assert write_input(parts) == PARTS
    assert [type(part) for part in parts] == [
        TextInput,
        *[AssetInput] * 5,
        WorkspaceInput,
        CapabilityInput,
    ]
    assert input_issues(list(parts)) == []


@pytest.mark.requirement("inputs.refused")
@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({}, "$.input[0]"),
        ({"type": "bytes", "data": "aGk="}, "$.input[0].data"),
        ({"type": "text"}, "$.input[0]"),
        ({"type": "text", "text": 7}, "$.input[0].text"),
        ({"type": "asset", "kind": "program", "ref": "a"}, "$.input[0].kind"),
        ({"type": "asset", "kind": "image"}, "$.input[0]"),
        ({"type": "asset", "kind": "image", "ref": "a", "data": "aGk="}, "$.input[0].data"),
        ("text", "$.input[0]"),
        (None, "$.input[0]"),
    ],
)
def test_a_part_of_another_form_is_refused_in_place(part: Any, path: str):
    assert find_issues(part) == [("schema_mismatch", path)]


@pytest.mark.requirement("inputs.refused")
@pytest.mark.parametrize("kind", ["asset", "workspace", "capability"])
@pytest.mark.parametrize(
    ("ref", "code"),
    [
        ("/home/me/x.png", "schema_mismatch"),
        ("C:\\x.png", "schema_mismatch"),
        ("file:///x.png", "schema_mismatch"),
        ("data:image/png;base64,aGk=", "large_payload_inline"),
        ("https://me:hunter22@example.org/x", "secret_leak_risk"),
    ],
)
def test_a_part_is_never_a_path_nor_content_nor_a_secret(kind: str, ref: str, code: str):
    part = {"type": kind, "ref": ref, **({"kind": "image"} if kind == "asset" else {})}
    assert find_issues(part) == [(code, "$.input[0].ref")]


@pytest.mark.requirement("inputs.capabilities")
def test_a_sensitive_attachment_is_a_capability():
    assert find_issues({"type": "capability", "ref": "asset:1"}) == [
        ("schema_mismatch", "$.input[0].ref")
    ]


@pytest.mark.requirement("inputs.refused")
def test_every_bad_part_is_reported_at_its_own_place():
    bad: dict[str, Any] = {"type": "workspace", "ref": "/etc/passwd"}
    assert find_issues({"type": "nonsense"}, PARTS[0], bad, None, bad) == [
        ("schema_mismatch", "$.input[0].type"),
        ("schema_mismatch", "$.input[2].ref"),
        ("schema_mismatch", "$.input[3]"),
        ("schema_mismatch", "$.input[4].ref"),
    ]


@pytest.mark.requirement("inputs.refused")
def test_typed_parts_are_held_to_the_same_rules():
    parts: list[InputPart] = [
        TextInput(text="x"),
        WorkspaceInput(ref="~/x"),
        CapabilityInput(ref="x"),
    ]
    assert [issue.path for issue in input_issues(parts, "$.in")] == ["$.in[1].ref", "$.in[2].ref"]
