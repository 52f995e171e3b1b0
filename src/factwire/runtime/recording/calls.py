"""A call of a tool as it is recorded: started once, ended once, with output in between."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from factwire.facts import Fact


class Put(Protocol):
    """Writes a fact of the turn that the call belongs to."""

    def __call__(self, event_class: str, payload: dict[str, Any], **ids: Any) -> Fact: ...


class CallRecorder:
    """Records one call."""

    def __init__(self, put: Put, call_id: str, clock: Callable[[], str]) -> None:
        self.call_id = call_id
        self.name = ""
        self._put_fact = put
        self._clock = clock
        self._began = ""
        self._ended = False

    def start(self, name: str, args: dict[str, Any], title: str | None) -> None:
        self.name = name
        self._began = self._clock()
        described = {"toolName": name} if title is None else {"toolName": name, "title": title}
        self._put("tool.started", described)
        self._put("tool.args", {"args": args})

    def output(self, piece: str, stream: str = "stdout") -> None:
        """A piece of output, as it comes."""
        self._put("tool.output.delta", {"delta": piece, "stream": stream})

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """How far the call is."""
        said: dict[str, Any] = {"message": message, "progress": done, "total": total}
        known = {name: value for name, value in said.items() if value is not None}
        self._put("tool.progress", known)

    def result(self, output: object = None, *, summary: str | None = None) -> None:
        """What came of it; leaving the block without one says that it worked."""
        said: dict[str, Any] = {"output": output, "summary": summary}
        known = {name: value for name, value in said.items() if value is not None}
        self._end("tool.result", known)

    def fail(self, category: str, message: str) -> None:
        """It did not work; the category is stable, the message is for people."""
        if not self._ended:
            self._end("tool.failed", {"failureCategory": category, "message": message})

    def close(self) -> None:
        if not self._ended:
            self.result()

    def _end(self, event_class: str, payload: dict[str, Any]) -> None:
        self._ended = True
        self._put(event_class, {"toolName": self.name, **payload, "durationMs": self._elapsed()})

    def _elapsed(self) -> float:
        began, now = datetime.fromisoformat(self._began), datetime.fromisoformat(self._clock())
        return max((now - began).total_seconds() * 1_000, 0.0)

    def _put(self, event_class: str, payload: dict[str, Any]) -> None:
        self._put_fact(event_class, payload, tool_call_id=self.call_id)
