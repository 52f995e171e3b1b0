"""Which keys name a secret.

A key is split into words, and the words decide: ``X-Api-Key``, ``apiKey`` and ``OPENAI_API_KEY``
all say *api key*. A last word that describes (``tokenCount``, ``secretRef``), a handle that only
pages (``nextPageToken``) and plural counters (``inputTokens``) name nothing that can leak. The
value has a say too: nothing, a flag, a count or the schema of a parameter is not a secret. Some
words name a secret only now and then (``pass``, ``auth``, any ``…Key``): there the value has to
look like a credential.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, cast

__all__ = [
    "NAME_PARTS",
    "REDACTED",
    "is_random",
    "is_secret_word",
    "is_talk",
    "may_name_secret",
    "names_secret",
    "secret_kind",
    "secret_name",
    "weak_name",
]

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
    "passcode": "password",
    "mnemonic": "secret",
}

_GLUED: Final[Mapping[str, str]] = {
    "password": "password",
    "passwd": "password",
    "passphrase": "password",
    "apikey": "api-key",
    "secretkey": "secret",
    "privatekey": "private-key",
    "accesstoken": "token",
    "authtoken": "token",
}
"""Words that count at the end of another, as in ``PGPASSWORD``."""

_WEAK: Final[Mapping[str, str]] = {
    "pass": "pass",
    "pw": "pass",
    "auth": "auth",
    "jwt": "auth",
    "session": "auth",
    "sessionid": "auth",
    "sid": "auth",
    "sess": "auth",
    "csrf": "auth",
    "xsrf": "auth",
    "signature": "auth",
    "otp": "code",
    "totp": "code",
    "mfa": "code",
    "pin": "code",
    "key": "key",
    "psk": "key",
}

NAME_PARTS: Final = (
    "key", "token", "secret", "pass", "auth", "pw", "credential", "cookie", "bearer",
    "signature", "jwt", "otp", "sess", "srf", "sid", "mfa", "psk", "mnemonic",
    "identified", "pin",
)  # fmt: skip
"""Every name that names a secret, always or now and then, has one of these in it."""

_WORDS: Final = re.compile(r"[A-Za-z][A-Za-z_. -]{0,63}")

_PLAIN_KEYS: Final = frozenset((
    "cache", "composite", "config", "dedupe", "event", "field", "foreign", "group", "hash", "hot",
    "idempotency", "index", "item", "locale", "lookup", "map", "message", "node", "object",
    "partition", "primary", "property", "public", "query", "range", "react", "routing", "row",
    "shortcut", "sort", "storage", "translation", "unique", "verification", "verifying",
))  # fmt: skip
"""Words before ``key`` that make it the name of something."""

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

_TALK: Final = re.compile(
    r"(?i:u?int\d+|float\d+|str(?:ing)?\d*|utf-?\d+\w*|base\d+(?:url)?|sha-?\d+|md5|v\d[\d.]*"
    r"|oauth-?2(?:\.0)?|http[s/]?[\d.]+|[a-z]{2}-?\d{3}|ed25519|x509|(?:rsa|aes|ecdsa)-?\d+[\w-]*)"
    r"|\d{4}-\d\d-\d\d.*"
    r"|(?:os|process|self|this|config|settings|env|ctx|request|response|options|args|params|data"
    r"|secrets|vars|inputs|steps|github|matrix|local|var|cfg|opts|kwargs)(?:[.?].*)?",
    re.DOTALL,
)
_FILLERS: Final = (REDACTED, "xxxx", "****", "...", "your", "placeholder", "changeme", "example")
_TYPE_NAME: Final = re.compile(r"(?:[A-Z][a-z]+){2,}V?\d?")

_RANDOM: Final = re.compile(r"[A-Za-z0-9_+/=.~%-]{8,1024}")
_ID: Final = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?:[a-z]{1,12}_)?[0-7][0-9A-Z]{25}"
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{32,1024}={0,2}")
_SEGMENTS: Final = re.compile(r"[_./=%~-]+")
_CODE: Final = re.compile(r"\d{4,10}")
_LEAST_BITS: Final = 2.75
"""Bits a character carries in what was drawn at random; words and counters carry fewer."""

_ENCODED_BITS: Final = 4.1
"""The same in what was drawn and then encoded, which signs may cut into short runs."""

_RANDOM_RUN: Final = 16
_PASSWORD_RUN: Final = 6


def is_talk(value: str) -> bool:
    """Whether a value is a filler, the name of a type or of a variable."""
    lowered = value.lower()
    if any(filler in lowered for filler in _FILLERS):
        return True
    return _TALK.fullmatch(value) is not None or _TYPE_NAME.fullmatch(value) is not None


def is_random(value: str, least: int = _RANDOM_RUN) -> bool:
    """Whether a value looks drawn at random: one run of so many letters and digits, mixed, in which
    hardly anything repeats. The ids that everybody uses are none.
    """
    if not _RANDOM.fullmatch(value) or _ID.fullmatch(value) or is_talk(value):
        return False
    if _BASE64.fullmatch(value) and _is_mixed(value) and _bits(value) >= _ENCODED_BITS:
        return True
    run = max(_SEGMENTS.split(value), key=len)
    return (
        len(run) >= least
        and _is_mixed(run)
        and _bits(run) >= min(_LEAST_BITS, math.log2(len(run)) - 0.7)
    )


def _is_mixed(run: str) -> bool:
    digits = sum(character.isdigit() for character in run)
    if digits == len(run):
        return False
    return digits > 1 or (digits == 1 and not run.islower() and not run.isupper())


def _bits(run: str) -> float:
    """Bits that one character carries, by how often each one occurs."""
    shares = [count / len(run) for count in Counter(run).values()]
    return -sum(share * math.log2(share) for share in shares)


_EMPTY: Final[tuple[object, ...]] = ({}, [], ())

_SCHEMA_MARKS: Final = ("type", "$ref", "anyOf", "oneOf", "allOf")

_COUNTER_LEVELS: Final = 4
"""How deep counters are nested (tokens by kind, by cache, by model); what is deeper counts as a
secret, so that hostile nesting cannot make the search recurse.
"""


def names_secret(key: str, value: object) -> bool:
    """Whether ``value``, found under ``key``, must not be shown."""
    return secret_kind(key, value) is not None


def secret_kind(key: str, value: object) -> str | None:
    """The kind of secret that a value under a key is, or None."""
    name, weak = _classify(key)
    if name is not None:
        return name if _can_leak(name, value) else None
    if weak is not None and isinstance(value, str) and _is_weak_secret(weak, value):
        return weak
    return None


def is_secret_word(text: str) -> bool:
    """Whether a text is nothing but words that name secrets."""
    words = _WORD.findall(text) if _WORDS.fullmatch(text) else []
    return bool(words) and all(word.lower() in _SINGLE or word.lower() in _WEAK for word in words)


def may_name_secret(name: str) -> bool:
    """Whether a part of the name of a secret stands in a text."""
    lowered = name.lower()
    for part in NAME_PARTS:  # noqa: SIM110 - a loop is much faster than a generator here
        if part in lowered:
            return True
    return False


def secret_name(key: str) -> str | None:
    """The kind of secret the words of ``key`` name, or None; ``tokens`` is the plural counter."""
    return _classify(key)[0]


def weak_name(key: str) -> str | None:
    """The kind of secret that the words of ``key`` may name, if the value looks like one."""
    return _classify(key)[1]


def _is_weak_secret(kind: str, value: str) -> bool:
    if kind == "code" and _CODE.fullmatch(value):
        return True
    return is_random(value, _PASSWORD_RUN if kind in ("pass", "code") else _RANDOM_RUN)


def _classify(key: str) -> tuple[str | None, str | None]:
    if len(key) > LONGEST_REMEMBERED_KEY:
        return _classify_key(key)
    return _classify_cached(key)


def _classify_key(key: str) -> tuple[str | None, str | None]:
    words = [word.lower() for word in _WORD.findall(key)]
    for place, word in enumerate(words):
        name = _name_at(words, place, word)
        if name is not None and not _is_description(words, place, name):
            return name, None
    return None, _weak_name_of(words)


_classify_cached = lru_cache(maxsize=4096)(_classify_key)


def _weak_name_of(words: list[str]) -> str | None:
    """What the last word may name, or a word that says more behind it: ``authKey``, ``mfaCode``."""
    if not words or words[-1] in _DESCRIPTIONS:
        return None
    if words[-1] in ("code", "cookie", "data", "header", "seed", "value") and len(words) > 1:
        words = words[:-1]
    weak = "pass" if words[-1].endswith("pw") else _WEAK.get(words[-1])
    if weak == "key" and (len(words) == 1 or words[-2] in _PLAIN_KEYS):
        return None
    return weak


def _name_at(words: list[str], place: int, word: str) -> str | None:
    if word in ("key", "keys"):
        return _BEFORE_KEY.get(words[place - 1]) if place else None
    if word == "tokens":
        return "tokens"
    if word == "identified":
        return "password" if words[place + 1 :] == ["by"] else None
    name = _SINGLE.get(word)
    if name is None and len(word) > _SHORTEST_GLUED:
        return next((_GLUED[end] for end in _GLUED if word.endswith(end)), None)
    return name


_SHORTEST_GLUED: Final = 6


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
