"""Recorder: writes a story down as facts, the same bytes every time.

Ids, sequences and times follow from the order of the telling. A story says what happened and whom
it concerns; nothing here is random, and no clock is read.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from factwire.facts import Fact, encode_fact
from factwire.facts.classes.class_tables import kind_of, status_of

SCHEMA: Final = "factwire-fact/v1"
RUNTIME: Final = "edge-local"
MORNING: Final = datetime(2026, 6, 10, 9, 0, tzinfo=UTC)

_STATUS: Final = {
    "thread.started": "completed",
    "turn.submitted": "pending",
    "run.status": "running",
    "model.requested": "running",
    "tool.args": "running",
    "action.updated": "blocked",
    "action.cancelled": "canceled",
    "action.canceled": "canceled",
    "action.expired": "canceled",
    "permission.requested": "blocked",
    "permission.denied": "failed",
    "sandbox.blocked": "blocked",
    "sandbox.violation": "failed",
    "review.requested": "pending",
    "task.created": "pending",
    "task.accepted": "pending",
    "task.queued": "pending",
    "task.updated": "running",
    "task.profile.resolved": "running",
    "task.delegated": "running",
    "task.dependency.updated": "blocked",
    "task.waiting": "blocked",
    "task.blocked": "blocked",
    "task.paused": "blocked",
    "task.resumed": "running",
    "task.retrying": "running",
    "task.cancel_requested": "running",
    "task.cancelled": "canceled",
    "task.timed_out": "failed",
    "task.lost": "failed",
    "job.created": "pending",
    "job.queued": "pending",
    "job.item.completed": "running",
    "job.item.failed": "running",
    "job.cancelled": "canceled",
    "subagent.spawned": "running",
    "subagent.status": "running",
    "subagent.input": "running",
    "handoff.requested": "pending",
    "handoff.rejected": "failed",
    "process.output": "running",
    "process.input": "running",
    "process.terminated": "canceled",
    "command.output": "running",
    "routing.not_possible": "failed",
    "state.delta": "completed",
    "quota.blocked": "blocked",
    "runtime.error": "failed",
}
"""Where the last word of a class does not tell; anything else that is told has happened."""

_IN_ANSWER: Final = frozenset({"artifact", "evidence", "file", "model", "reasoning", "tool"})
"""Families whose facts stand in the message of their turn's answer."""


class Recorder:
    """Tells facts of one thread, one second apart unless the story waits."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.thread_id = f"thr_{name}"
        self.turn_id: str | None = None
        self.facts: list[Fact] = []
        self._next: dict[str, int] = {self.thread_id: 1}
        self._clock = MORNING
        self._told = 0

    @property
    def sequence(self) -> int:
        """The sequence of the last fact of the thread."""
        return self._next[self.thread_id] - 1

    def wait(self, seconds: int) -> None:
        """Let time pass without a fact."""
        self._clock += timedelta(seconds=seconds)

    def tell(
        self, event_class: str, title: str, payload: dict[str, Any] | None = None, /, **fields: Any
    ) -> Fact:
        """State one fact; `fields` are any of a fact's, and go before what follows by itself."""
        fact = self.draft(event_class, title, payload, **fields)
        self.facts.append(fact)
        return fact

    def draft(
        self, event_class: str, title: str, payload: dict[str, Any] | None = None, /, **fields: Any
    ) -> Fact:
        """A fact that has its place and time, and that arrives whenever the story says."""
        self._told += 1
        self._clock += timedelta(seconds=1)
        thread = fields.get("thread_id", self.thread_id)
        sequence = self._next.get(thread, 1)
        self._next[thread] = sequence + 1
        known: dict[str, Any] = {
            "id": f"{self.name}-{self._told:03d}",
            "kind": kind_of(event_class),
            "status": _status(event_class),
            "title": title,
            "created_at": self.now(),
            "schema_version": SCHEMA,
            "runtime_id": RUNTIME,
            "sequence": sequence,
            "event_class": event_class,
            "session_id": f"ses_{self.name}",
            "thread_id": thread,
            "turn_id": self.turn_id,
            "message_id": self._message(event_class, fields),
            "payload": payload or {},
        }
        return Fact(**{**known, **fields})

    def _message(self, event_class: str, fields: dict[str, Any]) -> str | None:
        """The turn's answer, for what is shown in it; teammates speak for themselves."""
        spoken = event_class.partition(".")[0] in _IN_ANSWER and "subagent_id" not in fields
        return f"msg_{self.turn_id.removeprefix('trn_')}" if spoken and self.turn_id else None

    def now(self, later: int = 0) -> str:
        """The time of the last fact, or so many seconds later."""
        return (self._clock + timedelta(seconds=later)).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def ask(self, turn: str, prompt: str) -> None:
        """A person asks something, and the runtime starts on it."""
        self.turn_id = turn
        self.tell("turn.submitted", "Question asked", {"prompt": prompt})
        self.tell("turn.started", "Turn started")

    def answer(self, message: str, *pieces: str) -> None:
        """The model answers by pieces, and then gives the whole text."""
        self.stream(message, *pieces)
        self.tell("model.completed", "Answer", {"text": "".join(pieces)}, message_id=message)

    def stream(self, message: str, *pieces: str) -> None:
        for piece in pieces:
            self.tell("model.delta", "Answer", {"delta": piece}, message_id=message)

    def use(self, call: str, tool: str, title: str, summary: str, **fields: Any) -> None:
        """A tool call from its start to its result."""
        self.tell("tool.started", title, {"toolName": tool}, tool_call_id=call, **fields)
        self.tell("tool.result", title, {"summary": summary}, tool_call_id=call, **fields)

    def done(self) -> None:
        """The turn is over, and well."""
        self.tell("turn.completed", "Turn completed")
        self.turn_id = None


Scene = Callable[[Recorder], None]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A scene, what a person sees when it is over, and what is wrong with it on purpose."""

    name: str
    shows: str
    scene: Scene
    expected: dict[str, Any]
    issues: tuple[str, ...] = ()

    def record(self) -> list[Fact]:
        """The facts, in the order in which they arrive."""
        recorder = Recorder(self.name)
        self.scene(recorder)
        return recorder.facts

    def lines(self) -> bytes:
        """The facts as the file that is kept of them."""
        return b"".join(encode_fact(fact) + b"\n" for fact in self.record())


def story(
    shows: str, expected: dict[str, Any], *, issues: tuple[str, ...] = ()
) -> Callable[[Scene], Story]:
    """Make a story of a scene, named as the scene is."""

    def make(scene: Scene) -> Story:
        name = getattr(scene, "__name__", "")
        return Story(name=name, shows=shows, scene=scene, expected=expected, issues=issues)

    return make


def _status(event_class: str) -> str:
    told = _STATUS.get(event_class) or status_of(event_class)
    return "completed" if told == "pending" and event_class not in _STATUS else told
