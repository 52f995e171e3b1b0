"""The configuration as rows to show: key, value, source. Secrets are never among them.

A key's own variable is named, its value is not looked at. Passwords in URLs, options whose names
say that they are secret, and values that look like one are replaced.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from factwire.facts import redact_value
from factwire.runtime.configuration.keys import NAMED, SETTINGS
from factwire.runtime.configuration.layers import SourceKind
from factwire.runtime.configuration.resolution import Resolved


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: its value without secrets, where it came from, and what it is for."""

    key: str
    value: Any
    source: SourceKind
    where: str | None
    sentence: str


def rows(resolved: Resolved) -> list[Row]:
    """Every setting in the order of the table, then every agent's and every server's."""
    return [_row(resolved, key, value, text) for key, value, text in _values(resolved)]


def _row(resolved: Resolved, key: str, value: Any, sentence: str) -> Row:
    origin = resolved.origins[key]
    return Row(
        key=key,
        value=_harmless(key, value),
        source=origin.source,
        where=origin.where,
        sentence=sentence,
    )


def _harmless(key: str, value: Any) -> Any:
    if key.endswith(".api_key_env"):
        return value
    clean, _ = redact_value(msgspec.to_builtins(value))
    return clean


def _values(resolved: Resolved) -> Iterator[tuple[str, Any, str]]:
    settings: dict[str, Any] = msgspec.to_builtins(resolved.configuration)
    for key, setting in SETTINGS.items():
        group, dot, name = key.partition(".")
        yield key, settings[group][name] if dot else settings[group], setting.sentence
    for table, known in NAMED.items():
        for named, fields in sorted(settings[table].items()):
            for name, setting in known.items():
                key = f"{table}.{named}.{name}"
                if key in resolved.origins:
                    yield key, fields[name], setting.sentence
