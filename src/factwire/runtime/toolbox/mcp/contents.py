"""A result of a server's tool as facts and as words: nothing big and no bytes travel in a fact.

Texts are what a model hears. Pictures, sounds and files become artifacts behind a ref; links are
told and not followed. Structured content is kept as it is, behind a ref where it is long.
"""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import msgspec

from factwire.facts import Ref, redact_value
from factwire.facts.limits import SEQUENCE_MAX
from factwire.runtime.toolbox.calls import Call
from factwire.runtime.toolbox.limits import INLINE_CHARACTERS
from factwire.runtime.toolbox.mcp.failures import HINTS
from factwire.runtime.toolbox.mcp.limits import CONTENT_BYTES, CONTENTS, DATA_DEPTH
from factwire.runtime.toolbox.mcp.references import Veil
from factwire.runtime.toolbox.outcomes import Done

Part = dict[str, Any]

_VERSION: Final = 12


class Contents:
    """Gathers one result, part by part."""

    def __init__(self, call: Call, server: str, veil: Veil) -> None:
        self._call = call
        self._server = server
        self._veil = veil
        self._said: list[str] = []
        self._links: list[dict[str, Any]] = []
        self._artifacts: list[str] = []
        self._refs: list[str] = []
        self._told: dict[str, Any] = {}

    async def done(self, result: dict[str, Any]) -> Done:
        """What the call came to."""
        parts: list[Part] = result.get("content") or []
        for part in parts[:CONTENTS]:
            kind = str(part.get("type"))
            await _KINDS.get(kind, Contents.unknown)(self, part)
        if len(parts) > CONTENTS:
            self._said.append(f"({len(parts) - CONTENTS} more parts are left out)")
        if result.get("structuredContent") is not None:
            await self._structure(result["structuredContent"])
        return self._done(failed=result.get("isError") is True)

    def _done(self, *, failed: bool) -> Done:
        text = "\n".join(self._said)
        if self._links:
            self._told["links"] = self._links
        if self._artifacts:
            self._told["artifactRefs"] = self._artifacts
        summary = self._veil.short(text) if failed else None
        return Done(
            text=text,
            summary=summary or ("the tool says that it failed" if failed else None),
            data={"artifacts": self._artifacts, "links": [each["uri"] for each in self._links]},
            category="tool_error" if failed else None,
            hint=HINTS["tool_error"] if failed else None,
            told=self._told,
            refs=tuple(self._refs),
        )

    async def text(self, part: Part) -> None:
        self._said.append(self._veil.over(str(part.get("text", ""))))

    async def binary(self, part: Part) -> None:
        media_type = str(part.get("mimeType") or "application/octet-stream")
        await self._bytes(str(part["type"]), str(part.get("data", "")), media_type, None)

    async def resource(self, part: Part) -> None:
        resource: Part = part.get("resource") or {}
        uri = self._veil.short(str(resource.get("uri", "")))
        media_type = str(resource.get("mimeType") or "")
        if "blob" in resource:
            kept_as = media_type or "application/octet-stream"
            await self._bytes("file", str(resource["blob"]), kept_as, uri)
            return
        text = self._veil.over(str(resource.get("text", "")))
        ref = await self._call.keep(text, "artifact")
        self._tell("file", ref, media_type or "text/plain", uri)
        self._said.append(f"[{uri}]\n{text}")

    async def link(self, part: Part) -> None:
        wanted = {"uri": "uri", "name": "name", "mediaType": "mimeType"}
        link = {
            name: self._veil.short(str(part[field]))
            for name, field in wanted.items()
            if part.get(field)
        }
        self._links.append({"uri": "", **link})
        self._said.append(f"[link {link.get('name', '')}: {link.get('uri', '')}]")

    async def unknown(self, part: Part) -> None:
        self._said.append(f"[a part of an unknown kind: {self._veil.short(str(part.get('type')))}]")

    async def _bytes(self, kind: str, encoded: str, media_type: str, uri: str | None) -> None:
        media_type = self._veil.short(media_type)
        if len(encoded) > CONTENT_BYTES * 4 // 3 + 4:
            self._said.append(f"[{kind} {media_type}: more than {CONTENT_BYTES} bytes, not kept]")
            return
        try:
            content = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            self._said.append(f"[{kind} {media_type}: not base64, not kept]")
            return
        ref = await self._call.host.means.blobs.put(content, kind="artifact")
        self._tell(kind, ref, media_type, uri)
        self._said.append(f"[{kind} {media_type}, {len(content)} bytes, kept as {ref.ref}]")

    def _tell(self, kind: str, ref: Ref, media_type: str, uri: str | None) -> None:
        """Say that there is an artifact; the same resource again is another version of it."""
        artifact_id = self._artifact_id(uri or ref.ref)
        said = {
            "kind": kind,
            "title": uri or f"{kind} of {self._call.name}",
            "status": "ready",
            "mediaType": media_type,
            "contentRef": ref.ref,
            "versionId": ref.ref.rpartition(":")[2][:_VERSION],
            "source": f"mcp:{self._server}",
        }
        self._call.put("artifact.changed", said, artifact_id=artifact_id, ref_ids=(ref.ref,))
        self._artifacts.append(artifact_id)
        self._refs.append(ref.ref)

    def _artifact_id(self, name: str) -> str:
        about = f"{self._call.scope.thread_id}\nmcp:{self._server}\n{name}".encode()
        return f"art_{hashlib.sha256(about).hexdigest()[:24]}"

    async def _structure(self, given: Any) -> None:
        text = self._veil.over(json.dumps(given, ensure_ascii=False))
        clean, _ = redact_value(json.loads(text))
        if not self._said:
            self._said.append(text)
        if len(text) <= INLINE_CHARACTERS and _can_stand_in_a_fact(clean):
            self._told["structuredContent"] = clean
            return
        ref = await self._call.keep(text, "output")
        ref = msgspec.structs.replace(ref, media_type="application/json")
        self._told["structuredContentRef"] = msgspec.to_builtins(ref)
        self._refs.append(ref.ref)


_KINDS: Final[dict[str, Callable[[Contents, Part], Awaitable[None]]]] = {
    "text": Contents.text,
    "image": Contents.binary,
    "audio": Contents.binary,
    "resource": Contents.resource,
    "resource_link": Contents.link,
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
