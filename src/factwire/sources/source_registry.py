"""`OUTSIDE_AGENTS`: a row for each agent that Factwire knows; and `Source`, what can be said of
an agent's recorded streams.

An agent is one folder of this package and one row here. What can be converted, run, wrapped and
observed, the lines of `factwire doctor`, the reference and the entry points of `pyproject.toml`
(`make schemas`) derive from the row. Extras name versions of packages, which a row does not have,
so they are written by hand and a test holds them equal to it. Rows are strings: reading them loads
no agent.

A converter is handed the items of a stream one by one and builds the facts that they mean; it
looks at structured fields and at nothing else.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final, Literal, Protocol

import msgspec

from factwire.facts import Fact, Intake
from factwire.sources.kit.fact_builder import (
    START,
    FactBuilder,
    KeepRaw,
    name_raw,
    redact_raw,
)
from factwire.sources.kit.stream_framing import Framing, Unreadable, read_items


class Converter(Protocol):
    """Turns the items of one stream into facts, through a `FactBuilder`."""

    def take(self, item: dict[str, Any]) -> None:
        """Convert one item; an unknown one goes to `FactBuilder.warn_unknown`."""
        ...

    def finish(self) -> None:
        """The stream is over, as it ends or as it was cut."""
        ...


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What can be said of a source. `maps` has a row for each thing it emits, with what that
    becomes; `lacks` names what the source does not offer.
    """

    name: str
    title: str
    framing: Framing
    versions: str
    converter: Callable[[FactBuilder], Converter]
    maps: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    lacks: tuple[str, ...] = ()


class OutsideAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A row. `convert`, `live` and `observe` are modules of the folder, where it has them: one with
    a `SOURCE`, one with an `agent` to run (or `wrap`, for objects of an SDK), one with `install`.
    `extra` is the one of Factwire's that brings what it needs; any of `packages` is the SDK.
    """

    name: str
    folder: str
    convert: str | None = "convert"
    live: str | None = "live"
    kind: Literal["agent", "wrapper"] = "agent"
    observe: str | None = None
    extra: str | None = None
    packages: tuple[str, ...] = ()

    def module(self, part: str) -> str:
        return f"factwire.sources.{self.folder}.{part}"

    @property
    def entry_point(self) -> str | None:
        """What `pyproject.toml` names for it; None for one that is only converted."""
        if self.live is None:
            return None
        return f"{self.module(self.live)}:{_ENTRY_NAMES[self.kind]}"


_ENTRY_NAMES: Final = {"agent": "agent", "wrapper": "wrap"}

OUTSIDE_AGENTS: Final = (
    OutsideAgent(name="a2a", folder="a2a"),
    OutsideAgent(name="acp", folder="acp", extra="acp", packages=("agent-client-protocol",)),
    OutsideAgent(name="ag-ui", folder="ag_ui"),
    OutsideAgent(name="ai-sdk", folder="ai_sdk"),
    OutsideAgent(
        name="claude-code",
        folder="claude_code",
        extra="claude-code",
        packages=("claude-agent-sdk",),
    ),
    OutsideAgent(
        name="codex", folder="codex", convert=None, extra="codex", packages=("openai-codex",)
    ),
    # What `codex` runs live is recorded under the name of its server.
    OutsideAgent(name="codex-app-server", folder="codex", live=None),
    OutsideAgent(
        name="codex-exec",
        folder="codex",
        convert="exec_convert",
        live="exec_live",
        extra="codex",
        packages=("openai-codex",),
    ),
    OutsideAgent(
        name="langgraph",
        folder="langgraph",
        kind="wrapper",
        observe="observe",
        extra="langgraph",
        packages=("langgraph",),
    ),
    # A file says what is converted; the name alone says nothing.
    OutsideAgent(name="mapped", folder="mapped", convert=None),
    OutsideAgent(
        name="openai-agents",
        folder="openai_agents",
        kind="wrapper",
        observe="observe",
        extra="openai-agents",
        packages=("openai-agents",),
    ),
    OutsideAgent(name="opencode", folder="opencode"),
    OutsideAgent(
        name="pydantic-ai",
        folder="pydantic_ai",
        kind="wrapper",
        observe="observe",
        extra="pydantic-ai",
        packages=("pydantic-ai", "pydantic-ai-slim"),
    ),
)

_BY_NAME: Final = {agent.name: agent for agent in OUTSIDE_AGENTS}

SOURCE_NAMES: Final = tuple(agent.name for agent in OUTSIDE_AGENTS if agent.convert is not None)
"""Whose recorded streams can be converted."""


class UnknownSource(Exception):
    """Nobody converts streams of this name."""

    code = "unknown_source"

    def __init__(self, name: str) -> None:
        there = ", ".join(sorted(SOURCE_NAMES))
        super().__init__(
            f"unknown format {name!r}; expected one of the shapes auto, facts, runtime-event and "
            f"ui, or one of the sources {there}"
        )


def find_outside_agent(name: str) -> OutsideAgent | None:
    """A row by its name; None for an agent of somebody else's."""
    return _BY_NAME.get(name)


def find_source(name: str) -> Source:
    """A source by name; raises `UnknownSource`. Its module is loaded when it is asked for."""
    agent = _BY_NAME.get(name)
    if agent is None or agent.convert is None:
        raise UnknownSource(name)
    source: Source = import_module(agent.module(agent.convert)).SOURCE
    return source


def convert_recording(
    source: Source,
    lines: Iterable[bytes],
    *,
    thread_id: str,
    at: str = START,
    keep: KeepRaw = name_raw,
) -> Iterator[Fact]:
    """The facts of a recorded stream, in constant memory; `keep` is handed whatever is too big for
    a fact, and each item that is not known.
    """
    intake = Intake("collect", "facts")
    sequence = 0
    for fact in _build_facts(source, lines, thread_id, at, lambda raw: keep(redact_raw(raw))):
        taken = intake.feed(fact)
        for blob in taken.blobs:
            keep(blob.content)
        for each in (taken.fact, *taken.notes):
            sequence += 1
            yield msgspec.structs.replace(each, sequence=sequence)


def _build_facts(
    source: Source, lines: Iterable[bytes], thread_id: str, at: str, keep: KeepRaw
) -> Iterator[Fact]:
    builder = FactBuilder(source.name, thread_id=thread_id, at=at, keep=keep)
    converter = source.converter(builder)
    for item in read_items(lines, source.framing):
        if isinstance(item, Unreadable):
            builder.warn("unreadable_source_item", item.reason, item.data)
        else:
            converter.take(item)
        yield from builder.drain()
    converter.finish()
    builder.close_stream()
    yield from builder.drain()
