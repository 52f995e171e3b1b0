"""Which keys name a secret.

A key is split into words, and the words decide: ``X-Api-Key``, ``apiKey`` and ``OPENAI_API_KEY``
all say *api key*. A last word that describes (``tokenCount``, ``secretRef``), a handle that only
pages (``nextPageToken``) and plural counters (``inputTokens``) name nothing that can leak. The
value has a say too: nothing, a flag, a count or the schema of a parameter is not a secret.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, cast

__all__ = ["REDACTED", "names_secret", "secret_name"]

REDACTED: Final = "[redacted]"

LONGEST_REMEMBERED_KEY: Final = 128
"""Longer keys are judged each time, so that hostile keys cannot fill the memory of verdicts."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_SINGLE: Final[Mapping[str, str]] = {
    "apikey": "api-key",
    "apikeys": "api-key",
    "authorization": "authorization",
    "password": "password",
    "passwords": "password",
    "passwd": "password",
    "pwd": "password",
    "passphrase": "password",
    "secret": "secret",
    "secrets": "secret",
    "secretkey": "secret",
    "clientsecret": "secret",
    "token": "token",
    "accesstoken": "token",
    "refreshtoken": "token",
    "authtoken": "token",
    "credential": "credential",
    "credentials": "credential",
    "privatekey": "private-key",
    "accesskey": "access-key",
    "cookie": "cookie",
    "cookies": "cookie",
    "bearer": "bearer",
}

_BEFORE_KEY: Final[Mapping[str, str]] = {
    "api": "api-key",
    "private": "private-key",
    "access": "access-key",
    "signing": "signing-key",
    "encryption": "encryption-key",
}

_DESCRIPTIONS: Final = frozenset((
    "algorithm", "at", "budget", "consent", "count", "counts", "description", "enabled",
    "endpoint", "expiration", "expired", "expires", "expiry", "field", "file", "format", "hint",
    "id", "ids", "in", "index", "kind", "label", "length", "limit", "limits", "max", "min",
    "name", "names", "path", "policy", "position", "provider", "ref", "reference", "references",
    "refs", "remaining", "required", "scope", "scopes", "size", "source", "status", "store",
    "total", "ttl", "type", "types", "uri", "uris", "url", "urls", "usage", "used", "valid",
    "version",
))  # fmt: skip

_HANDLES: Final = frozenset((
    "bos", "cancel", "cancellation", "continuation", "cursor", "delta", "eos", "idempotency",
    "mask", "next", "pad", "page", "paging", "prev", "previous", "progress", "resume",
    "special", "start", "stop", "sync", "unk",
))  # fmt: skip

_COUNTED: Final = frozenset((
    "accepted", "audio", "budget", "cache", "cached", "completion", "context", "cost",
    "creation", "estimated", "generated", "image", "input", "limit", "max", "min", "new", "num",
    "number", "of", "output", "per", "prediction", "prompt", "read", "reasoning", "rejected",
    "remaining", "text", "thinking", "total", "used", "video", "window", "write",
))  # fmt: skip

_SCHEMA_WORDS: Final = frozenset((
    "$ref", "additionalProperties", "allOf", "anyOf", "deprecated", "description",
    "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength",
    "maximum", "minItems", "minLength", "minimum", "multipleOf", "nullable", "oneOf", "pattern",
    "properties", "readOnly", "required", "title", "type", "uniqueItems", "writeOnly",
))  # fmt: skip

_EMPTY: Final[tuple[object, ...]] = ({}, [], ())

_SCHEMA_MARKS: Final = ("type", "$ref", "anyOf", "oneOf", "allOf")

_COUNTER_LEVELS: Final = 4
"""How deep counters are nested (tokens by kind, by cache, by model); what is deeper counts as a
secret, so that hostile nesting cannot make the search recurse.
"""


def names_secret(key: str, value: object) -> bool:
    """Whether ``value``, found under ``key``, must not be shown."""
    name = secret_name(key)
    return name is not None and _can_leak(name, value)


def secret_name(key: str) -> str | None:
    """The kind of secret the words of ``key`` name, or None; ``tokens`` is the plural counter."""
    if len(key) > LONGEST_REMEMBERED_KEY:
        return _classify_key(key)
    return _classify_cached(key)


def _classify_key(key: str) -> str | None:
    words = [word.lower() for word in _WORD.findall(key)]
    for place, word in enumerate(words):
        name = _name_at(words, place, word)
        if name is not None and not _is_description(words, place, name):
            return name
    return None


_classify_cached = lru_cache(maxsize=4096)(_classify_key)


def _name_at(words: list[str], place: int, word: str) -> str | None:
    if word in ("key", "keys"):
        return _BEFORE_KEY.get(words[place - 1]) if place else None
    if word == "tokens":
        return "tokens"
    return _SINGLE.get(word)


def _is_description(words: list[str], place: int, name: str) -> bool:
    if words[-1] in _DESCRIPTIONS and place < len(words) - 1:
        return True
    if name == "tokens":
        return any(word in _COUNTED for word in words)
    return name == "token" and any(word in _HANDLES for word in words[:place])


def _can_leak(name: str, value: object, levels: int = _COUNTER_LEVELS) -> bool:
    if value is None or isinstance(value, bool):
        return False
    if isinstance(value, str):
        return value not in ("", REDACTED) and not (name == "tokens" and value.isdigit())
    if isinstance(value, (int, float)):
        return name not in ("token", "tokens", "bearer")
    return value not in _EMPTY and (not levels or _any_can_leak(name, value, levels - 1))


def _any_can_leak(name: str, value: object, levels: int) -> bool:
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        return not _is_schema(fields) and any(
            _can_leak(name, item, levels) for item in fields.values()
        )
    if isinstance(value, (list, tuple)):
        items = cast("list[object] | tuple[object, ...]", value)
        return any(_can_leak(name, item, levels) for item in items)
    return True


def _is_schema(value: Mapping[object, object]) -> bool:
    return _SCHEMA_WORDS.issuperset(cast("Mapping[str, object]", value)) and any(
        mark in value for mark in _SCHEMA_MARKS
    )
