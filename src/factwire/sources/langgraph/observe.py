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

from factwire.facts.json_values import object_at
from factwire.runtime.mint import new_id
from factwire.sources.kit.observed_run import ObservedRun, Patches, current_run, log_errors
from factwire.sources.kit.sdk_values import to_json
from factwire.sources.langgraph.convert import chunk_line, completion_line, messages_of, start_line

if TYPE_CHECKING:
    from factwire.sources.observe.observer import Observer


SOURCE: Final = "langgraph"
_NEEDED: Final = ("updates", "tasks")
_RECORDED: Final = ("updates", "tasks", "messages", "custom")
_INTERRUPT: Final = "__interrupt__"
_HANDED_OUT_ONCE: Final = frozenset({"messages", "tools"})
"""Modes in which a graph hands out at the top what it has not handed out from a subgraph."""


def install(observing: "Observer", patches: Patches) -> None:
    def change(module: ModuleType) -> None:
        graph = module.Pregel
        patches.replace_method(graph, "stream", partial(_observe_stream, observing))
        patches.replace_method(graph, "astream", partial(_observe_astream, observing))

    patches.when_imported("langgraph.pregel.main", change)


class _StreamRequest(NamedTuple):
    """What the program asked for."""

    modes: tuple[str, ...]
    is_list: bool
    subgraphs: bool
    version: str

    @property
    def is_deep(self) -> bool:
        """Whether subgraphs are heard: not where that would change what is handed out above."""
        return self.subgraphs or _HANDED_OUT_ONCE.isdisjoint(self.modes)

    def to_kwargs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """What is asked for instead."""
        modes = list(dict.fromkeys((*self.modes, *_NEEDED)))
        return {**kwargs, "stream_mode": modes, "subgraphs": self.is_deep, "version": self.version}

    def split_chunk(self, chunk: Any) -> tuple[tuple[str, ...], str, Any]:
        if self.version == "v2":
            return tuple(chunk["ns"]), chunk["type"], chunk["data"]
        return chunk if self.is_deep else ((), *chunk)

    def wants(self, chunk: Any) -> bool:
        namespace, mode, _ = self.split_chunk(chunk)
        return mode in self.modes and (self.subgraphs or not namespace)

    def to_chunk(self, chunk: Any) -> Any:
        """A chunk in the shape that it would have had."""
        if self.version == "v2":
            return chunk
        namespace, mode, data = self.split_chunk(chunk)
        part = (mode, data) if self.is_list else data
        if not self.subgraphs:
            return part
        return (namespace, mode, data) if self.is_list else (namespace, data)


def _observe_stream(observing: "Observer", original: Callable[..., Any]) -> Callable[..., Any]:
    def stream(graph: Any, input: Any, config: Any = None, **kwargs: Any) -> Iterator[Any]:  # noqa: A002
        seen = _begin_run(observing, input, config)
        if seen is None:
            yield from original(graph, input, config, **kwargs)
            return
        request = _read_request(graph, kwargs)
        with closing(original(graph, input, config, **request.to_kwargs(kwargs))) as chunks:
            while True:
                # Only while the graph works: in between, this is the program's own context.
                with seen.watch():
                    chunk = next(chunks, _END)
                if chunk is _END:
                    break
                _record_chunk(seen, request, chunk)
                if request.wants(chunk):
                    with _stopped_early(seen):
                        yield request.to_chunk(chunk)
        _end_run(observing, seen, config)

    return stream


def _observe_astream(observing: "Observer", original: Callable[..., Any]) -> Callable[..., Any]:
    async def astream(
        graph: Any,
        input: Any,  # noqa: A002 - the name of the SDK
        config: Any = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        seen = _begin_run(observing, input, config)
        if seen is None:
            async for chunk in original(graph, input, config, **kwargs):
                yield chunk
            return
        request = _read_request(graph, kwargs)
        async with aclosing(original(graph, input, config, **request.to_kwargs(kwargs))) as chunks:
            while True:
                with seen.watch():
                    chunk = await anext(chunks, _END)
                if chunk is _END:
                    break
                _record_chunk(seen, request, chunk)
                if request.wants(chunk):
                    with _stopped_early(seen):
                        yield request.to_chunk(chunk)
        _end_run(observing, seen, config)

    return astream


class _stopped_early:  # noqa: N801 - a with-statement that reads as one
    """A program that takes no more chunks has stopped the graph."""

    def __init__(self, seen: ObservedRun) -> None:
        self._seen = seen

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._seen.end_failed(error)


@log_errors
def _begin_run(observing: "Observer", start: Any, config: Any) -> ObservedRun | None:
    """A graph inside of a graph is told by the one around it."""
    around = current_run()
    if around is not None and around.source == SOURCE:
        return None
    resume = getattr(start, "resume", None)
    goes_on = start is None or resume is not None
    seen = observing.resume_run([_thread_key(config)]) if goes_on else None
    if seen is not None:
        decisions = [_to_decision(question, resume) for question in seen.questions]
        seen.questions.clear()
        seen.record({"type": "run.started", "decisions": decisions})
        return seen
    seen = observing.begin_run(SOURCE)
    if seen is not None:
        seen.record(start_line(start))
    return seen


def _to_decision(question: str, resume: Any) -> dict[str, Any]:
    """What a node that waits is given; yes and no are told as such."""
    answers = object_at(resume) or {}
    answer = answers.get(question, resume)
    if isinstance(answer, bool):
        return {"id": question, "approved": answer}
    return {"id": question, "answer": to_json(answer)}


def _read_request(graph: Any, kwargs: dict[str, Any]) -> _StreamRequest:
    modes = kwargs.get("stream_mode") or graph.stream_mode
    is_list = not isinstance(modes, str)
    return _StreamRequest(
        modes=tuple(modes) if is_list else (modes,),
        is_list=is_list,
        subgraphs=bool(kwargs.get("subgraphs")),
        version=kwargs.get("version") or "v1",
    )


@log_errors
def _record_chunk(seen: ObservedRun, request: _StreamRequest, chunk: Any) -> None:
    namespace, mode, data = request.split_chunk(chunk)
    update = object_at(data) or {} if mode == "updates" else {}
    if mode in _RECORDED:
        line = chunk_line(namespace, mode, data)
        seen.record({**line, "data": _name_messages(line["data"])} if update else line)
    if _INTERRUPT in update:
        seen.questions += [str(each.id) for each in update[_INTERRUPT]]
        seen.recorded_ids.add(_INTERRUPT)


def _name_messages(data: dict[str, Any]) -> dict[str, Any]:
    """An update whose messages all have a name: a node may write one that gets it only later."""
    return {
        node: written if node == _INTERRUPT else _with_message_ids(written)
        for node, written in data.items()
    }


def _with_message_ids(written: object) -> object:
    state = object_at(written)
    if state is None or "messages" not in state:
        return written
    messages = [
        {**message, "id": message.get("id") or new_id("msg")}
        for message in map(object_at, messages_of(state["messages"]))
        if message is not None
    ]
    return {**state, "messages": messages}


@log_errors
def _end_run(observing: "Observer", seen: ObservedRun, config: Any) -> None:
    if _INTERRUPT in seen.recorded_ids:
        seen.recorded_ids.discard(_INTERRUPT)
        seen.questions[:] = dict.fromkeys(seen.questions)
        seen.record({"type": "run.interrupted", "interruptions": []})
        observing.await_decision(seen, [_thread_key(config)])
    else:
        seen.end(completion_line())


def _thread_key(config: Any) -> tuple[str, str]:
    """What a graph calls the conversation that may go on."""
    configurable = object_at((object_at(config) or {}).get("configurable")) or {}
    return SOURCE, str(configurable.get("thread_id"))


_END: Final = object()
