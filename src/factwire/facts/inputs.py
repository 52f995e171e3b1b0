"""What a person gives an agent: text inline, everything else as a ref.

Images, audio, video and documents are asset refs; business objects are workspace refs, resolved by
the application that owns them; sensitive attachments are capability refs, granted and revocable.
No bytes, no data: URLs, no paths of anyone's machine.

`read_input` reads what Factwire itself takes. Facts of others carry input in forms of their own
(attachments, parts of a message, answers); `carried_input_issues` holds them to the same rules.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.issues import InvalidFacts, Issue, path_step, type_mismatches
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
        place = f"{path}[{index}]"
        part_issues = type_mismatches(part, InputPart, place)
        if part_issues:
            part_issues = _inline_issues(part, place, is_part=True) or part_issues
        else:
            result.append(msgspec.convert(part, InputPart))
            part_issues = _part_issues(result[-1], f"{place}.ref")
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


_INPUT_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "turn": ("input", "parts", "content", "attachments"),
    "queue": ("input", "parts", "content", "attachments", "queuedTurns"),
    "messages": ("messages", "parts", "content", "attachments"),
    "model": ("parts", "content", "attachments"),
    "subagent": ("input", "parts", "content", "attachments"),
    "action": ("response", "answer", "answers", "attachments"),
}
"""Family of a class → the fields of its payload that carry what a person put in."""

_ATTACHMENTS: Final = "attachments"
_EVERYWHERE: Final = frozenset(("input", "parts", _ATTACHMENTS))
"""Fields beside the payload, and attachments in it, carry input whatever the class."""

INPUT_FIELDS: Final = frozenset(name for names in _INPUT_PLACES.values() for name in names)
"""Fields of a payload that are looked at; a fact without any carries no input in it."""

_MEDIA: Final = frozenset((
    "asset", "audio", "base64", "blob", "capability", "document", "file", "image", "image_url",
    "input_audio", "input_file", "input_image", "localimage", "local_image", "media", "resource",
    "resource_link", "video", "workspace",
))  # fmt: skip
"""Types of parts that stand for content."""

_PLACES: Final = frozenset((
    "file", "filepath", "href", "imageurl", "localpath", "location", "path", "ref", "src", "source",
    "uri", "url",
))  # fmt: skip
"""Fields of a part that say where its content is."""

_CONTENTS: Final = frozenset(("base64", "blob", "bytes", "data", "filedata", "inlinedata"))
"""Fields of a part that hold its content."""

_NOT_INPUT: Final = frozenset(("args", "arguments", "text", "updatedinput"))
"""Fields in which paths and data are a tool's or somebody's words."""


def carried_input_issues(fact: Fact) -> list[Issue]:
    """Local paths, file: addresses and inline bytes in the input that a fact of anyone carries."""
    family = (fact.event_class or "").partition(".")[0]
    issues: list[Issue] = []
    for name in _INPUT_PLACES.get(family, (_ATTACHMENTS,)):
        if name in fact.payload:
            issues += _place_issues(name, fact.payload[name], f"$.payload.{name}")
    for name in fact.extra.keys() & _EVERYWHERE if fact.extra else ():
        issues += _place_issues(name, fact.extra[name], f"$.{name}")
    return issues


def _place_issues(name: str, value: object, path: str) -> list[Issue]:
    """The items of a list are parts; other values may have parts in them."""
    if name not in _EVERYWHERE or not isinstance(value, list):
        return _inline_issues(value, path, is_part=name == _ATTACHMENTS)
    return [
        issue
        for index, item in enumerate(cast("list[object]", value))
        for issue in _inline_issues(item, f"{path}[{index}]", is_part=True)
    ]


def _inline_issues(value: object, path: str, *, is_part: bool) -> list[Issue]:
    if isinstance(value, str):
        return _location_issues(value, path) if is_part else []
    if isinstance(value, list):
        items = enumerate(cast("list[object]", value))
        return [
            issue
            for index, item in items
            for issue in _inline_issues(item, f"{path}[{index}]", is_part=False)
        ]
    if not isinstance(value, Mapping):
        return []
    part = cast("Mapping[str, object]", value)
    is_media = is_part or _is_media(part)
    return [
        issue
        for key, item in part.items()
        for issue in _field_issues(key, item, path + path_step(key), is_media=is_media)
    ]


def _is_media(part: Mapping[str, object]) -> bool:
    kind = part.get("type")
    if isinstance(kind, str) and kind.lower() in _MEDIA:
        return True
    return any(name in part for name in ("mediaType", "mimeType", "media_type", "mime_type"))


def _field_issues(key: str, value: object, path: str, *, is_media: bool) -> list[Issue]:
    name = key.replace("_", "").lower()
    if name in _NOT_INPUT:
        return []
    if is_media and name in _CONTENTS and _is_content(value):
        if isinstance(value, str) and (issues := _location_issues(value, path)):
            return issues
        return [Issue("schema_mismatch", path, "an input names its content by ref, not inline")]
    if isinstance(value, str):
        return _location_issues(value, path) if is_media and name in _PLACES else []
    return _inline_issues(value, path, is_part=is_media and name in _PLACES)


def _is_content(value: object) -> bool:
    """Text or numbers; the size of an asset is one number, which is fine."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        return bool(items) and all(isinstance(item, int) for item in items)
    return isinstance(value, str) and bool(value)


def _location_issues(text: str, path: str) -> list[Issue]:
    """What is wrong with a location, but for secrets, which are looked for everywhere."""
    issue = ref_issue(text, path) if text else None
    return [issue] if issue is not None and issue.code != "secret_leak_risk" else []
