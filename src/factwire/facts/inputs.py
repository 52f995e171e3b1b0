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


_ATTACHMENTS: Final = "attachments"
_EVERYWHERE: Final = frozenset(("input", "parts", _ATTACHMENTS))
"""Fields beside the payload, and attachments in it, carry input whatever the class."""

_CONVERSATION: Final = (
    *("input", "parts", "content", "message", "messages", "prompt", "queuedTurns", _ATTACHMENTS),
)
_INPUT_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "action": ("response", "answer", "answers", _ATTACHMENTS),
    **dict.fromkeys(
        (
            *("artifact", "command", "context", "evidence", "file", "hook", "patch", "permission"),
            *("process", "review", "sandbox", "test", "tool"),
        ),
        (_ATTACHMENTS,),
    ),
}
"""Family of a class → the fields of its payload that carry what a person put in, where these are
not those of a conversation. What a tool is given and what it gives is its own.
"""

INPUT_FIELDS: Final = frozenset((*_CONVERSATION, *_INPUT_PLACES["action"]))
"""Fields of a payload that are looked at; a fact without any carries no input in it."""

_MEDIA_TYPES: Final = frozenset((
    "asset", "audio", "base64", "binary", "blob", "capability", "document", "file", "filedata",
    "fileid", "filereference", "fileurl", "image", "imagedata", "imagefile", "imageurl",
    "inputaudio", "inputfile", "inputimage", "inputvideo", "localfile", "localimage", "media",
    "resource", "resourcelink", "video", "videourl", "workspace",
))  # fmt: skip
"""Types of parts that stand for content, of Factwire, OpenAI, Anthropic, the AI SDK, A2A, AG-UI,
MCP, ACP and Gemini.
"""

_MEDIA_MARKS: Final = (
    *("mediaType", "mimeType", "media_type", "mime_type", "mime", "inlineData", "inline_data"),
    *("fileData", "file_data"),
)
"""Fields by which a part without such a type stands for content."""

_CONTENT, _LOCATION, _EITHER, _TYPED = "content", "location", "either", "typed"
_FIELD_ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("base64", "blob", "bytes", "data", "filedata", "inlinedata", "raw"),
            *("audiodata", "imagedata", "videodata"),
        ),
        _CONTENT,
    ),
    **dict.fromkeys(("location", "src", "source"), _LOCATION),
    **dict.fromkeys(("audio", "document", "file", "image", "media", "video"), _EITHER),
    "value": _TYPED,
}
"""What a field of a part holds: its content, the place of its content, an address or else content,
or what the type beside it says. Any name that ends in a word of `_LOCATION_WORDS` is a place.
"""

_LOCATION_WORDS: Final = ("ref", "url", "uri", "path")
_INLINE_TYPES: Final = ("base64", "data")

_NOT_INPUT: Final = frozenset(("args", "arguments", "text", "updatedinput"))
"""Fields in which paths and data are a tool's or somebody's words."""

_CALLS: Final = ("tool", "function")
"""How types of parts begin whose `input` is that of a tool."""


def carried_input_issues(fact: Fact) -> list[Issue]:
    """Local paths, file: addresses and inline bytes in the input that a fact of anyone carries."""
    found = INPUT_FIELDS & fact.payload.keys()
    if not (fact.extra or found & _EVERYWHERE) and all(
        type(fact.payload[name]) is str for name in found
    ):
        return []  # Plain words, as most prompts and messages are.
    family = (fact.event_class or "").partition(".")[0]
    issues: list[Issue] = []
    for name in _INPUT_PLACES.get(family, _CONVERSATION):
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
    kind = _type_of(part)
    is_media = is_part or kind in _MEDIA_TYPES or any(mark in part for mark in _MEDIA_MARKS)
    return [
        issue
        for key, item in part.items()
        if _plain_name(key) not in _NOT_INPUT and not _is_word(kind, key, item)
        for issue in _field_issues(key, item, path + path_step(key), kind if is_media else None)
    ]


def _is_word(kind: str, key: str, value: object) -> bool:
    """Whether a field is the input of a tool, or an object that is itself what a part says."""
    return (key == "input" and kind.startswith(_CALLS)) or (
        key == kind == "data" and isinstance(value, Mapping)
    )


def _type_of(part: Mapping[str, object]) -> str:
    """What a part calls itself; A2A calls the type of a part its kind."""
    kinds = (part.get("type"), part.get("kind"))
    names = [_plain_name(kind) for kind in kinds if isinstance(kind, str)]
    return next((name for name in names if name in _MEDIA_TYPES), names[0] if names else "")


def _plain_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _field_issues(key: str, value: object, path: str, media: str | None) -> list[Issue]:
    """What is wrong with a field of a part; `media` is the type of one that stands for content."""
    if media is None:
        return [] if isinstance(value, str) else _inline_issues(value, path, is_part=False)
    role = _role_of(_plain_name(key), media, value)
    if role == _CONTENT and _is_content(value):
        if isinstance(value, str) and (issues := _location_issues(value, path)):
            return issues
        return [Issue("schema_mismatch", path, "an input names its content by ref, not inline")]
    if isinstance(value, str):
        return _location_issues(value, path) if role == _LOCATION else []
    return _inline_issues(value, path, is_part=True)


def _role_of(name: str, media: str, value: object) -> str | None:
    role = _FIELD_ROLES.get(name)
    if role == _TYPED:
        return _CONTENT if media in _INLINE_TYPES else _LOCATION
    if role == _EITHER:
        return _LOCATION if isinstance(value, str) and ":" in value else _CONTENT
    return _LOCATION if role is None and name.endswith(_LOCATION_WORDS) else role


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
