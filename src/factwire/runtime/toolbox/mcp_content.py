"""What an MCP server says: the tools it offers, its questions to a person, its results. All of
it is bounded, and none of it is trusted.

Tools get names that are safe, `mcp__SERVER__TOOL`; nothing big and no bytes travel in a fact.
"""

import base64
import binascii
import hashlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

import msgspec

from factwire.facts import Ref, redact_text, redact_value
from factwire.facts.json_values import object_at
from factwire.facts.limits import SEQUENCE_MAX
from factwire.runtime.configuration.configuration import McpServer
from factwire.runtime.policy import PolicyRequest, hash_request, make_visible, show_request
from factwire.runtime.provider import Decision, DecisionRequest
from factwire.runtime.toolbox.limits import (
    CONTENT_BYTES,
    CONTENTS,
    DATA_DEPTH,
    DESCRIPTION_CHARACTERS,
    INLINE_CHARACTERS,
    MESSAGE_CHARACTERS,
    NAME_CHARACTERS,
    QUESTION_CHARACTERS,
    SCHEMA_CHARACTERS,
    TOOLS,
)
from factwire.runtime.toolbox.tool_calls import ActiveCall, CallResult, ToolRefused

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SHORTEST: Final = 6
"""Characters of a value that is taken out of texts; a shorter one is a word of everyday."""


class MissingVariable(Exception):
    """A variable that is referred to and not set."""

    code = "missing_variable"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"expected the variable {name}, which is not set")


class SecretMask:
    """Takes known values, and whatever looks like a secret, out of texts."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        long = {value for value in values if len(value) >= _SHORTEST}
        self._values = sorted(long, key=len, reverse=True)

    def mask(self, text: str) -> str:
        """The text without the known values."""
        for value in self._values:
            text = text.replace(value, "[redacted]")
        return text

    def short(self, text: str, most: int = MESSAGE_CHARACTERS) -> str:
        """One line of bounded length, without secrets of any kind."""
        clean, _ = redact_text(self.mask(" ".join(text[: most * 4].split())))
        return clean if len(clean) <= most else f"{clean[:most]}…"


def list_variables(values: Mapping[str, str]) -> list[str]:
    """The variables that values refer to, each once."""
    return list(dict.fromkeys(name for value in values.values() for name in _names(value)))


def resolve_references(values: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The values with what they refer to; raises `MissingVariable`."""
    for name in list_variables(values):
        if not environment.get(name):
            raise MissingVariable(name)
    return {
        key: _REFERENCE.sub(lambda found: environment[found[1]], value)
        for key, value in values.items()
    }


def _names(value: str) -> list[str]:
    return _REFERENCE.findall(value)


HINTS: Final = {
    "tool_error": "Check the message of the tool, fix the arguments, and call it again.",
    "missing_extra": "Install it: pip install 'factwire[mcp]'.",
    "server_unavailable": "Check the server's command or URL, and what it needs, with `factwire "
    "doctor`.",
    "server_died": "Call it again; the server is restarted. What the last call did is not known.",
    "protocol_error": "The server rejected the call or violated the protocol; check its own log.",
    "timeout": "Raise `seconds` of the server in the configuration, or ask for less at once.",
    "unknown_tool": "Use one of the tools that the server offers now.",
}
"""Category → what to do."""


def build_tool_refusal(category: str, message: str) -> ToolRefused:
    return ToolRefused(category, message, hint=HINTS.get(category))


PREFIX: Final = "mcp__"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_HASH: Final = 8


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server lists it."""

    name: str
    description: str = ""
    schema: dict[str, Any]


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as an agent may call it; `tool` is what its `server` calls it."""

    name: str
    server: str
    tool: str
    description: str
    schema: dict[str, Any]


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a server by their names, and what was left out, in sentences."""

    tools: dict[str, OfferedTool]
    remarks: tuple[str, ...] = ()


def parse_server_name(name: str) -> str | None:
    """The server that a tool's name is about; None for a name that is no server's."""
    server, parted, tool = name.removeprefix(PREFIX).partition("__")
    return server if name.startswith(PREFIX) and parted and tool else None


def build_tool_name(server: str, tool: str) -> str:
    """The name under which a server's tool is offered."""
    start = f"{PREFIX}{server}__"
    limit = NAME_CHARACTERS - len(start)
    if _PLAIN.fullmatch(tool) and len(tool) <= limit:
        return start + tool
    digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:_HASH]
    return f"{start}{_OTHER.sub('_', tool)[: limit - _HASH - 1]}_{digest}"


def build_catalog(server: str, settings: McpServer, listed: Iterable[ListedTool]) -> Catalog:
    """What of a server's list is offered."""
    tools: dict[str, OfferedTool] = {}
    remarks: list[str] = []
    for each in listed:
        if not is_wanted(settings, each.name):
            continue
        name = build_tool_name(server, each.name)
        problem = _problem(each, name, tools)
        if problem is None:
            tools[name] = _to_offered_tool(name, server, each)
        else:
            remarks.append(f"{name}: {problem}")
    return Catalog(tools=tools, remarks=tuple(remarks))


def is_wanted(settings: McpServer, tool: str) -> bool:
    """Whether the lists of the configuration let a tool through; what is denied stays denied."""
    allowed = any(fnmatchcase(tool, each) for each in settings.allow_tools)
    return allowed and not any(fnmatchcase(tool, each) for each in settings.deny_tools)


def _problem(each: ListedTool, name: str, tools: dict[str, OfferedTool]) -> str | None:
    if name in tools:
        return "the server lists it twice; the first one is used"
    if len(tools) >= TOOLS:
        return f"the server offers more than {TOOLS} tools"
    if len(json.dumps(each.schema)) > SCHEMA_CHARACTERS:
        return f"its schema has more than {SCHEMA_CHARACTERS} characters"
    return None


def _to_offered_tool(name: str, server: str, each: ListedTool) -> OfferedTool:
    text = each.description
    shown = text if len(text) <= DESCRIPTION_CHARACTERS else f"{text[:DESCRIPTION_CHARACTERS]}…"
    return OfferedTool(
        name=name, server=server, tool=each.name, description=shown, schema=each.schema
    )


Reply = Literal["accept", "decline", "cancel"]

_ACTION: Final = "structured_input"
_LINKS: Final = ("https", "http")
_VALUES: Final = (str, int, float, bool)


class Elicitation(msgspec.Struct, frozen=True, kw_only=True):
    """A form with its `schema`, or a link with its `url`."""

    server: str
    message: str
    schema: dict[str, Any] | None = None
    url: str | None = None

    @property
    def problem(self) -> str | None:
        """Why nobody is asked this."""
        if len(self.message) + len(str(self.schema)) > QUESTION_CHARACTERS:
            return f"a question and its form can have at most {QUESTION_CHARACTERS} characters"
        if self.url is not None and urlsplit(self.url).scheme not in _LINKS:
            return "a link must be an http or https URL"
        return None


def to_action_request(
    question: Elicitation, call: ActiveCall, workspace: str, seconds: float
) -> DecisionRequest:
    """The question as a request to a person."""
    about: dict[str, Any] = {"call": call.call_id, "message": question.message}
    if question.schema is not None:
        about["form"] = question.schema
    request = PolicyRequest(tool=call.name, workspace=workspace, url=question.url, args=about)
    what = "asks you to open a link" if question.url else "asks"
    message = make_visible(question.message)[:MESSAGE_CHARACTERS]
    return DecisionRequest(
        action_type=_ACTION,
        prompt=f"{question.server} {what}: {message}",
        shown=show_request(request),
        args_hash=hash_request(request),
        tool_name=call.name,
        subagent_id=call.scope.subagent_id,
        requested_by=f"mcp:{question.server}",
        response_schema=question.schema,
        expires_in=seconds,
    )


def build_reply(
    question: Elicitation, decision: Decision | None
) -> tuple[Reply, dict[str, Any] | None]:
    """What the server hears; a form that is accepted comes with its content."""
    if decision is None or (not decision.allowed and decision.decided_by is None):
        return "cancel", None
    if not decision.allowed:
        return "decline", None
    if question.schema is None:
        return "accept", None
    content = _content(question.schema, decision.response)
    return ("cancel", None) if content is None else ("accept", content)


def _content(schema: Mapping[str, Any], response: object) -> dict[str, Any] | None:
    """The fields of the form that were filled in; None where the answer is not one to the form."""
    answers = object_at(response) or {}
    fields = cast("dict[str, Any]", schema.get("properties") or {})
    content = {name: answers[name] for name in fields if name in answers}
    required = cast("list[str]", schema.get("required") or [])
    if any(name not in content for name in required) or not all(map(_fits, content.values())):
        return None
    return content


def _fits(value: object) -> bool:
    """What the protocol lets a field hold."""
    if isinstance(value, list):
        return all(isinstance(each, str) for each in cast("list[object]", value))
    return isinstance(value, _VALUES)


ContentPart = dict[str, Any]

_VERSION: Final = 12


class McpResultBuilder:
    """Gathers one result, part by part."""

    def __init__(self, call: ActiveCall, server: str, mask: SecretMask) -> None:
        self._call = call
        self._server = server
        self._mask = mask
        self._texts: list[str] = []
        self._links: list[dict[str, Any]] = []
        self._artifacts: list[str] = []
        self._refs: list[str] = []
        self._fields: dict[str, Any] = {}

    async def build_result(self, result: dict[str, Any]) -> CallResult:
        """What the call came to."""
        parts: list[ContentPart] = result.get("content") or []
        for part in parts[:CONTENTS]:
            kind = str(part.get("type"))
            await _KINDS.get(kind, McpResultBuilder.unknown)(self, part)
        if len(parts) > CONTENTS:
            self._texts.append(f"({len(parts) - CONTENTS} more parts are left out)")
        if result.get("structuredContent") is not None:
            await self._structure(result["structuredContent"])
        return self._finish_result(failed=result.get("isError") is True)

    def _finish_result(self, *, failed: bool) -> CallResult:
        text = "\n".join(self._texts)
        if self._links:
            self._fields["links"] = self._links
        if self._artifacts:
            self._fields["artifactRefs"] = self._artifacts
        summary = self._mask.short(text) if failed else None
        return CallResult(
            text=text,
            summary=summary or ("the tool reported a failure" if failed else None),
            data={"artifacts": self._artifacts, "links": [each["uri"] for each in self._links]},
            category="tool_error" if failed else None,
            hint=HINTS["tool_error"] if failed else None,
            fields=self._fields,
            refs=tuple(self._refs),
        )

    async def text(self, part: ContentPart) -> None:
        self._texts.append(self._mask.mask(str(part.get("text", ""))))

    async def binary(self, part: ContentPart) -> None:
        media_type = str(part.get("mimeType") or "application/octet-stream")
        await self._bytes(str(part["type"]), str(part.get("data", "")), media_type, None)

    async def resource(self, part: ContentPart) -> None:
        resource: ContentPart = part.get("resource") or {}
        uri = self._mask.short(str(resource.get("uri", "")))
        media_type = str(resource.get("mimeType") or "")
        if "blob" in resource:
            kept_as = media_type or "application/octet-stream"
            await self._bytes("file", str(resource["blob"]), kept_as, uri)
            return
        text = self._mask.mask(str(resource.get("text", "")))
        ref = await self._call.keep(text, "artifact")
        self._record_artifact("file", ref, media_type or "text/plain", uri)
        self._texts.append(f"[{uri}]\n{text}")

    async def link(self, part: ContentPart) -> None:
        wanted = {"uri": "uri", "name": "name", "mediaType": "mimeType"}
        link = {
            name: self._mask.short(str(part[field]))
            for name, field in wanted.items()
            if part.get(field)
        }
        self._links.append({"uri": "", **link})
        self._texts.append(f"[link {link.get('name', '')}: {link.get('uri', '')}]")

    async def unknown(self, part: ContentPart) -> None:
        self._texts.append(
            f"[a part of an unknown kind: {self._mask.short(str(part.get('type')))}]"
        )

    async def _bytes(self, kind: str, encoded: str, media_type: str, uri: str | None) -> None:
        media_type = self._mask.short(media_type)
        if len(encoded) > CONTENT_BYTES * 4 // 3 + 4:
            self._texts.append(f"[{kind} {media_type}: more than {CONTENT_BYTES} bytes, not kept]")
            return
        try:
            content = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            self._texts.append(f"[{kind} {media_type}: not base64, not kept]")
            return
        ref = await self._call.host.resources.blobs.put(content, kind="artifact")
        self._record_artifact(kind, ref, media_type, uri)
        self._texts.append(f"[{kind} {media_type}, {len(content)} bytes, kept as {ref.ref}]")

    def _record_artifact(self, kind: str, ref: Ref, media_type: str, uri: str | None) -> None:
        """Say that there is an artifact; the same resource again is another version of it."""
        artifact_id = self._artifact_id(uri or ref.ref)
        payload = {
            "kind": kind,
            "title": uri or f"{kind} of {self._call.name}",
            "status": "ready",
            "mediaType": media_type,
            "contentRef": ref.ref,
            "versionId": ref.ref.rpartition(":")[2][:_VERSION],
            "source": f"mcp:{self._server}",
        }
        self._call.put("artifact.changed", payload, artifact_id=artifact_id, ref_ids=(ref.ref,))
        self._artifacts.append(artifact_id)
        self._refs.append(ref.ref)

    def _artifact_id(self, name: str) -> str:
        about = f"{self._call.scope.thread_id}\nmcp:{self._server}\n{name}".encode()
        return f"art_{hashlib.sha256(about).hexdigest()[:24]}"

    async def _structure(self, value: Any) -> None:
        text = self._mask.mask(json.dumps(value, ensure_ascii=False))
        clean, _ = redact_value(json.loads(text))
        if not self._texts:
            self._texts.append(text)
        if len(text) <= INLINE_CHARACTERS and _can_stand_in_a_fact(clean):
            self._fields["structuredContent"] = clean
            return
        ref = await self._call.keep(text, "output")
        ref = msgspec.structs.replace(ref, media_type="application/json")
        self._fields["structuredContentRef"] = msgspec.to_builtins(ref)
        self._refs.append(ref.ref)


_KINDS: Final[dict[str, Callable[[McpResultBuilder, ContentPart], Awaitable[None]]]] = {
    "text": McpResultBuilder.text,
    "image": McpResultBuilder.binary,
    "audio": McpResultBuilder.binary,
    "resource": McpResultBuilder.resource,
    "resource_link": McpResultBuilder.link,
}
"""Kind of a part → how it is taken."""


def _can_stand_in_a_fact(value: Any, depth: int = DATA_DEPTH) -> bool:
    """Whether every reader of JSON reads it: not too deep, and no number out of range."""
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        below = cast("list[Any]", value)
        return depth > 0 and all(_can_stand_in_a_fact(each, depth - 1) for each in below)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) <= SEQUENCE_MAX
