"""LangGraph, observed: the stream of a graph, with what it needs to be told beside what was asked.

`invoke` and its like are streams inside. The program gets the chunks that it asked for and no
others. Models are not made to stream for our sake: `messages` are told in pieces where the program
asks for them, else whole, from the update of their node.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from factwire.projection.reading import table
from factwire.runtime.minting import new_id
from factwire.sources.live.sdk_langgraph import (
    chunk_line,
    completed_line,
    messages_of,
    started_line,
)
from factwire.sources.live.sdk_values import plain
from factwire.sources.observe.patches import Patches
from factwire.sources.observe.runs import ObservedRun, harmless
from factwire.sources.observe.threads import current_run

if TYPE_CHECKING:
    from factwire.sources.observe.observing import Observing

SOURCE: Final = "langgraph"
_NEEDED: Final = ("updates", "tasks")
_TOLD: Final = ("updates", "tasks", "messages", "custom")
_INTERRUPT: Final = "__interrupt__"
_HANDED_OUT_ONCE: Final = frozenset({"messages", "tools"})
"""Modes in which a graph hands out at the top what it has not handed out from a subgraph."""


def install(observing: "Observing", patches: Patches) -> None:
    def change(module: ModuleType) -> None:
        graph = module.Pregel
        patches.method(graph, "stream", partial(_stream, observing))
        patches.method(graph, "astream", partial(_astream, observing))

    patches.when_imported("langgraph.pregel.main", change)


class _Asked(NamedTuple):
    """What the program asked for."""

    modes: tuple[str, ...]
    is_list: bool
    subgraphs: bool
    version: str

    @property
    def is_deep(self) -> bool:
        """Whether subgraphs are heard: not where that would change what is handed out above."""
        return self.subgraphs or _HANDED_OUT_ONCE.isdisjoint(self.modes)

    def settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """What is asked for instead."""
        modes = list(dict.fromkeys((*self.modes, *_NEEDED)))
        return {**given, "stream_mode": modes, "subgraphs": self.is_deep, "version": self.version}

    def parts(self, chunk: Any) -> tuple[tuple[str, ...], str, Any]:
        if self.version == "v2":
            return tuple(chunk["ns"]), chunk["type"], chunk["data"]
        return chunk if self.is_deep else ((), *chunk)

    def wants(self, chunk: Any) -> bool:
        namespace, mode, _ = self.parts(chunk)
        return mode in self.modes and (self.subgraphs or not namespace)

    def shaped(self, chunk: Any) -> Any:
        """A chunk in the shape that it would have had."""
        if self.version == "v2":
            return chunk
        namespace, mode, data = self.parts(chunk)
        part = (mode, data) if self.is_list else data
        if not self.subgraphs:
            return part
        return (namespace, mode, data) if self.is_list else (namespace, data)


def _stream(observing: "Observing", original: Callable[..., Any]) -> Callable[..., Any]:
    def stream(graph: Any, input: Any, config: Any = None, **given: Any) -> Iterator[Any]:  # noqa: A002
        seen = _begun(observing, input, config)
        if seen is None:
            yield from original(graph, input, config, **given)
            return
        asked = _asked(graph, given)
        with closing(original(graph, input, config, **asked.settings(given))) as chunks:
            while True:
                # Only while the graph works: in between, this is the program's own context.
                with seen.watched():
                    chunk = next(chunks, _END)
                if chunk is _END:
                    break
                _tell(seen, asked, chunk)
                if asked.wants(chunk):
                    with _left_early(seen):
                        yield asked.shaped(chunk)
        _close(observing, seen, config)

    return stream


def _astream(observing: "Observing", original: Callable[..., Any]) -> Callable[..., Any]:
    async def astream(
        graph: Any,
        input: Any,  # noqa: A002 - the name of the SDK
        config: Any = None,
        **given: Any,
    ) -> AsyncIterator[Any]:
        seen = _begun(observing, input, config)
        if seen is None:
            async for chunk in original(graph, input, config, **given):
                yield chunk
            return
        asked = _asked(graph, given)
        async with aclosing(original(graph, input, config, **asked.settings(given))) as chunks:
            while True:
                with seen.watched():
                    chunk = await anext(chunks, _END)
                if chunk is _END:
                    break
                _tell(seen, asked, chunk)
                if asked.wants(chunk):
                    with _left_early(seen):
                        yield asked.shaped(chunk)
        _close(observing, seen, config)

    return astream


class _left_early:  # noqa: N801 - a with-statement that reads as one
    """A program that takes no more chunks has stopped the graph."""

    def __init__(self, seen: ObservedRun) -> None:
        self._seen = seen

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._seen.failed(error)


@harmless
def _begun(observing: "Observing", given: Any, config: Any) -> ObservedRun | None:
    """A graph inside of a graph is told by the one around it."""
    around = current_run()
    if around is not None and around.source == SOURCE:
        return None
    resume = getattr(given, "resume", None)
    goes_on = given is None or resume is not None
    seen = observing.resumed([_key(config)]) if goes_on else None
    if seen is not None:
        decisions = [_decision(question, resume) for question in seen.questions]
        seen.questions.clear()
        seen.tell({"type": "run.started", "decisions": decisions})
        return seen
    seen = observing.run(SOURCE)
    if seen is not None:
        seen.tell(started_line(given))
    return seen


def _decision(question: str, resume: Any) -> dict[str, Any]:
    """What a node that waits is given; yes and no are told as such."""
    answers = table(resume) or {}
    answer = answers.get(question, resume)
    if isinstance(answer, bool):
        return {"id": question, "approved": answer}
    return {"id": question, "answer": plain(answer)}


def _asked(graph: Any, given: dict[str, Any]) -> _Asked:
    modes = given.get("stream_mode") or graph.stream_mode
    is_list = not isinstance(modes, str)
    return _Asked(
        modes=tuple(modes) if is_list else (modes,),
        is_list=is_list,
        subgraphs=bool(given.get("subgraphs")),
        version=given.get("version") or "v1",
    )


@harmless
def _tell(seen: ObservedRun, asked: _Asked, chunk: Any) -> None:
    namespace, mode, data = asked.parts(chunk)
    update = table(data) or {} if mode == "updates" else {}
    if mode in _TOLD:
        line = chunk_line(namespace, mode, data)
        seen.tell({**line, "data": _named(line["data"])} if update else line)
    if _INTERRUPT in update:
        seen.questions += [str(each.id) for each in update[_INTERRUPT]]
        seen.told.add(_INTERRUPT)


def _named(data: dict[str, Any]) -> dict[str, Any]:
    """An update whose messages all have a name: a node may write one that gets it only later."""
    return {
        node: written if node == _INTERRUPT else _with_names(written)
        for node, written in data.items()
    }


def _with_names(written: object) -> object:
    state = table(written)
    if state is None or "messages" not in state:
        return written
    messages = [
        {**message, "id": message.get("id") or new_id("msg")}
        for message in map(table, messages_of(state["messages"]))
        if message is not None
    ]
    return {**state, "messages": messages}


@harmless
def _close(observing: "Observing", seen: ObservedRun, config: Any) -> None:
    if _INTERRUPT in seen.told:
        seen.told.discard(_INTERRUPT)
        seen.questions[:] = dict.fromkeys(seen.questions)
        seen.tell({"type": "run.interrupted", "interruptions": []})
        observing.wait(seen, [_key(config)])
    else:
        seen.end(completed_line())


def _key(config: Any) -> tuple[str, str]:
    """What a graph calls the conversation that may go on."""
    configurable = table((table(config) or {}).get("configurable")) or {}
    return SOURCE, str(configurable.get("thread_id"))


_END: Final = object()
