"""Replacing secrets by ``[redacted]``, in text and in nested data.

A value under a key that names a secret is replaced whole; elsewhere only the secret part of a text
is. Data without secrets comes back as the very same object. What was replaced is not a secret any
more: redacting twice changes nothing and finds nothing.
"""

from typing import Final, cast

import msgspec

from factwire.facts.issues import path_step
from factwire.facts.limits import NESTING_DEPTH
from factwire.facts.secret_names import REDACTED, names_secret, secret_name
from factwire.facts.secrets import find_secrets, may_hold_secret

__all__ = ["REDACTED", "Finding", "find_in_value", "redact_text", "redact_value"]

_DEPTH_RULE: Final = "depth"


class Finding(msgspec.Struct, frozen=True):
    """Where something was hidden, and by which rule; never what."""

    path: str
    rule: str


class _Hidden(msgspec.Struct, frozen=True):
    """The replacement of a value, and the findings with paths relative to it."""

    value: object
    findings: list[Finding]


def redact_text(text: str) -> tuple[str, list[str]]:
    """The text with each secret replaced, and the rules that fired, in order."""
    secrets = find_secrets(text)
    if not secrets:
        return text, []
    pieces: list[str] = []
    end = 0
    for secret in secrets:
        pieces += text[end : secret.start], REDACTED
        end = secret.end
    pieces.append(text[end:])
    return "".join(pieces), [secret.rule for secret in secrets]


def redact_value(value: object, path: str = "$") -> tuple[object, list[Finding]]:
    """The data with each secret replaced; the very same object when there is none."""
    hidden = _redact(value, 0)
    if hidden is None:
        return value, []
    return hidden.value, _beneath(path, hidden.findings)


def find_in_value(value: object, path: str = "$") -> list[Finding]:
    """What `redact_value` would hide."""
    return redact_value(value, path)[1]


def _redact(value: object, depth: int) -> _Hidden | None:
    """None when there is nothing to hide."""
    kind = type(value)
    if kind is str:
        return _redact_string(cast("str", value))
    if kind is dict:
        return _redact_mapping(cast("dict[object, object]", value), depth)
    if kind is list or kind is tuple:
        return _redact_items(cast("list[object] | tuple[object, ...]", value), depth)
    return None


def _redact_string(text: str) -> _Hidden | None:
    if not may_hold_secret(text):
        return None
    redacted, rules = redact_text(text)
    if not rules:
        return None
    return _Hidden(redacted, [Finding("", f"value:{rule}") for rule in rules])


def _redact_items(items: list[object] | tuple[object, ...], depth: int) -> _Hidden | None:
    if depth >= NESTING_DEPTH:
        return _TOO_DEEP
    changed: list[object] | None = None
    findings: list[Finding] = []
    for place, item in enumerate(items):
        hidden = _redact(item, depth + 1)
        if hidden is not None:
            changed = list(items) if changed is None else changed
            changed[place] = hidden.value
            findings += _beneath(f"[{place}]", hidden.findings)
    if changed is None:
        return None
    return _Hidden(tuple(changed) if isinstance(items, tuple) else changed, findings)


def _redact_mapping(mapping: dict[object, object], depth: int) -> _Hidden | None:
    if depth >= NESTING_DEPTH:
        return _TOO_DEEP
    replaced: dict[object, _Hidden] = {}
    secret_keys: dict[object, _Hidden] = {}
    for key, value in mapping.items():
        if isinstance(key, str):
            if may_hold_secret(key) and (found := _redact_string(key)):
                secret_keys[key] = found
            if secret_name(key) is not None and names_secret(key, value):
                rule = f"key:{secret_name(key)}"
                replaced[key] = _Hidden(REDACTED, [Finding("", rule)])
                continue
        hidden = _redact(value, depth + 1)
        if hidden is not None:
            replaced[key] = hidden
    if not replaced and not secret_keys:
        return None
    return _rebuilt(mapping, replaced, secret_keys)


_TOO_DEEP: Final = _Hidden(REDACTED, [Finding("", _DEPTH_RULE)])


def _rebuilt(
    mapping: dict[object, object],
    replaced: dict[object, _Hidden],
    secret_keys: dict[object, _Hidden],
) -> _Hidden:
    changed: dict[object, object] = {}
    findings: list[Finding] = []
    for key, value in mapping.items():
        hidden = replaced.get(key)
        shown = _free_name(changed, mapping) if key in secret_keys else key
        changed[shown] = value if hidden is None else hidden.value
        step = _step(shown) if shown is key else REDACTED
        if key in secret_keys:
            findings += _beneath(step, secret_keys[key].findings)
        if hidden is not None:
            findings += _beneath(step, hidden.findings)
    return _Hidden(changed, findings)


def _free_name(taken: dict[object, object], mapping: dict[object, object]) -> str:
    """Two secret keys of one object must not fall onto one name."""
    name, count = REDACTED, 1
    while name in taken or name in mapping:
        count += 1
        name = f"{REDACTED} {count}"
    return name


def _step(key: object) -> str:
    return path_step(key) if isinstance(key, str) else f"[{key}]"


def _beneath(step: str, findings: list[Finding]) -> list[Finding]:
    return [Finding(step + finding.path, finding.rule) for finding in findings]
