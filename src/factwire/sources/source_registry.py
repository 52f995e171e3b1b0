"""`Source`: one outside agent system, as far as its recorded streams go, and the sources by name.

A converter is handed the items of a stream one by one and builds the facts that they mean; it
looks at structured fields and at nothing else.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final, Protocol

import msgspec

from factwire.facts import Fact, Intake
from factwire.sources.kit.fact_builder import START, FactBuilder, KeepRaw, name_raw
from factwire.sources.kit.stream_framing import Framing, Unreadable, read_items


class Converter(Protocol):
    """Turns the items of one stream into facts, through a telling."""

    def take(self, item: dict[str, Any]) -> None:
        """Tell one item; whatever is not known goes to `Telling.unknown`."""
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
    extra: str | None = None
    maps: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    lacks: tuple[str, ...] = ()


class UnknownSource(Exception):
    """Nobody converts streams of this name."""

    code = "unknown_source"

    def __init__(self, name: str) -> None:
        there = ", ".join(sorted(MODULES))
        super().__init__(
            f"{name!r} is none of the shapes auto, facts, runtime-event and ui, and none of the "
            f"sources {there}"
        )


MODULES: Final[dict[str, str]] = {
    "a2a": "factwire.sources.a2a.convert",
    "acp": "factwire.sources.acp.convert",
    "ag-ui": "factwire.sources.ag_ui.convert",
    "ai-sdk": "factwire.sources.ai_sdk.convert",
    "claude-code": "factwire.sources.claude_code.convert",
    "codex-app-server": "factwire.sources.codex.convert",
    "codex-exec": "factwire.sources.codex.exec_convert",
    "langgraph": "factwire.sources.langgraph.convert",
    "openai-agents": "factwire.sources.openai_agents.convert",
    "opencode": "factwire.sources.opencode.convert",
    "pydantic-ai": "factwire.sources.pydantic_ai.convert",
}
"""Name → module that has it as `SOURCE`; a module is loaded when it is asked for."""


def find_source(name: str) -> Source:
    """A source by name; raises `UnknownSource`."""
    module = MODULES.get(name)
    if module is None:
        raise UnknownSource(name)
    source: Source = import_module(module).SOURCE
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
    for fact in _build_facts(source, lines, thread_id, at, keep):
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
