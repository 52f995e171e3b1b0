"""What a person gives an agent: text inline, everything else as a ref.

Images, audio, video and documents are asset refs; business objects are workspace refs, resolved by
the application that owns them; sensitive attachments are capability refs, granted and revocable.
No bytes, no data: URLs, no paths of anyone's machine.
"""

from typing import Any, Final, Literal

import msgspec

from factwire.facts.issues import InvalidFacts, Issue, type_mismatches
from factwire.facts.refs import ref_issue

AssetKind = Literal["image", "audio", "video", "document"]


class _Part(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="type",
):
    """The root of the input parts; `type` tells them apart."""


class TextInput(_Part, frozen=True, tag="text"):
    """Words, as they were written."""

    text: str


class AssetInput(_Part, frozen=True, tag="asset"):
    """An uploaded image, sound, film or document, by ref."""

    kind: AssetKind
    ref: str
    media_type: str | None = None
    name: str | None = None
    bytes: int | None = None


class WorkspaceInput(_Part, frozen=True, tag="workspace"):
    """An object of the application (a product, a ticket, a file of the workspace), by ref."""

    ref: str
    object_type: str | None = None
    title: str | None = None


class CapabilityInput(_Part, frozen=True, tag="capability"):
    """A sensitive attachment: the right to use it, never its content or place."""

    ref: str
    purpose: str | None = None
    expires_at: str | None = None


InputPart = TextInput | AssetInput | WorkspaceInput | CapabilityInput

_CAPABILITY_SCHEME: Final = "capability:"


def read_input(parts: str | list[Any], path: str = "$.input") -> tuple[InputPart, ...]:
    """The parts of an input, from plain text or JSON; raises `InvalidFacts` with all issues."""
    if isinstance(parts, str):
        return (TextInput(text=parts),)
    result: list[InputPart] = []
    issues: list[Issue] = []
    for index, part in enumerate(parts):
        part_issues = type_mismatches(part, InputPart, f"{path}[{index}]")
        if not part_issues:
            result.append(msgspec.convert(part, InputPart))
            part_issues = _part_issues(result[-1], f"{path}[{index}].ref")
        issues += part_issues
    if issues:
        raise InvalidFacts(issues)
    return tuple(result)


def input_issues(parts: list[InputPart], path: str = "$.input") -> list[Issue]:
    """Refs that are local paths, inline data or secrets, and capabilities that are not."""
    return [
        issue
        for index, part in enumerate(parts)
        for issue in _part_issues(part, f"{path}[{index}].ref")
    ]


def _part_issues(part: InputPart, path: str) -> list[Issue]:
    if isinstance(part, TextInput):
        return []
    issue = ref_issue(part.ref, path)
    if issue:
        return [issue]
    if isinstance(part, CapabilityInput) and not part.ref.startswith(_CAPABILITY_SCHEME):
        message = f"a sensitive attachment is passed as {_CAPABILITY_SCHEME}ID"
        return [Issue("schema_mismatch", path, message)]
    return []


def write_input(parts: tuple[InputPart, ...]) -> list[dict[str, Any]]:
    """The parts as JSON objects, for `payload.input` of a turn.submitted fact."""
    return [msgspec.to_builtins(part) for part in parts]
