"""Scripts of fixtures: a stream that is told, what a provider's read models say, what must show.

Expectations are written by hand from the rules of the contract; nothing here asks a projection.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from examples.streams.stories.recorder import Recorder
from factwire.facts import FIXTURE_VERSION, Expected, Fact, Fixture, write_fact

READ_MODEL: Final = "factwire-read-model/v1"


class Script(Recorder):
    """Tells the facts of one fixture; turn `trn_1` is asked in `ask_1` and answered in `msg_1`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.initial: dict[str, Any] | None = None
        self.repair: dict[str, Any] | None = None
        self.final: dict[str, Any] | None = None

    def begin(self, prompt: str, turn: str = "trn_1") -> None:
        """A turn up to the point where the model was asked."""
        self.turn_id, number = turn, turn.removeprefix("trn_")
        payload = {"prompt": prompt}
        self.tell("turn.submitted", "Turn submitted", payload, message_id=f"ask_{number}")
        self.tell("turn.started", "Turn started")
        working = {"status": "running", "message": "Working"}
        self.tell("run.status", "Working", working, run_id=f"run_{number}")
        self.tell("model.requested", "Model asked", {"model": "large-2"})

    def say(self, *pieces: str) -> None:
        """The whole answer, by pieces and then in one."""
        self.answer(f"msg_{(self.turn_id or '').removeprefix('trn_')}", *pieces)

    def end(self, terminal: str = "completed", payload: dict[str, Any] | None = None) -> None:
        """The end of the turn and the snapshot after it."""
        self.tell(f"turn.{terminal}", f"Turn {terminal}", payload)
        self.turn_id = None
        self.tell("snapshot.updated", "Snapshot updated")

    def lose(self, count: int) -> None:
        """Facts that were made and never arrived."""
        for _ in range(count):
            self.draft("model.delta", "Answer", {"delta": "lost on the way "})

    def resume_at(self, sequence: int) -> None:
        """The stream begins here; what was before is known from a read model."""
        self._next[self.thread_id] = sequence

    def model(self, status: str, **fields: Any) -> dict[str, Any]:
        """What the provider's read model says at this point of the stream."""
        empty = ("pendingActions", "toolCalls", "queuedTurns", "incidents", "diagnostics")
        return {
            "schemaVersion": READ_MODEL,
            "runtimeId": "edge-local",
            "sessionId": f"ses_{self.name}",
            "threadId": self.thread_id,
            "status": status,
            "eventCursor": self.sequence,
            **{name: [] for name in empty},
            **fields,
        }

    def expect_ended(self, status: str = "completed", **fields: Any) -> None:
        """The final read model of a thread whose last turn is over."""
        turn = fields.pop("turn", "trn_1")
        why = fields.pop("why", {})
        if status == "failed":
            ended = next(fact for fact in reversed(self.facts) if fact.event_class == "turn.failed")
            fields["incidents"] = [*fields.get("incidents", []), failed_turn(ended)]
        outcome = {"status": status, "turnId": turn, **why}
        self.final = self.model(status, lastOutcome=outcome, **fields)

    def expect_running(self, status: str = "running", **fields: Any) -> None:
        """The final read model of a thread whose turn goes on."""
        self.final = self.model(status, activeTurnId="trn_1", **fields)


def call(started: Fact, state: str, ended: Fact | None = None, **fields: Any) -> dict[str, Any]:
    """A tool call as a read model lists it."""
    row = {
        "toolCallId": started.tool_call_id,
        "state": state,
        "toolName": started.payload.get("toolName"),
        "turnId": started.turn_id,
        "subagentId": started.subagent_id,
        "startedAt": started.created_at,
        "completedAt": ended.created_at if ended else None,
        **fields,
    }
    return {name: value for name, value in row.items() if value is not None}


def request(required: Fact, **fields: Any) -> dict[str, Any]:
    """An open action as a read model lists it: everything that its fact says of it."""
    row = {
        "actionId": required.action_id,
        "status": "pending",
        "title": required.title,
        "requestedBy": required.subagent_id,
        "subagentId": required.subagent_id,
        "taskId": required.task_id,
        "turnId": required.turn_id,
        "toolCallId": required.tool_call_id,
        "requestedAt": required.created_at,
        "sequence": required.sequence,
        **required.payload,
        **fields,
    }
    return {name: value for name, value in row.items() if value is not None}


def remark(about: Fact, code: str, severity: str, **fields: Any) -> dict[str, Any]:
    """A diagnostic as a read model lists it."""
    return {
        "diagnosticId": fields.pop("diagnosticId", about.id),
        "code": code,
        "severity": severity,
        "message": fields.pop("message", about.title),
        "eventId": about.id,
        **fields,
    }


def failed_turn(ended: Fact) -> dict[str, Any]:
    """The failure of a turn as a read model lists it among the incidents."""
    why = {name: ended.payload[name] for name in ("failureCategory", "recoveryHint")}
    category: str = why["failureCategory"]
    return remark(
        ended,
        category,
        "error",
        diagnosticId=f"turn_failed:{ended.turn_id}",
        message=ended.payload.get("message", category),
        turnId=ended.turn_id,
        createdAt=ended.created_at,
        **why,
    )


class FixtureScript(msgspec.Struct, frozen=True, kw_only=True):
    """One fixture as it is told: its name, what it is about, its scene and what must show."""

    name: str
    title: str
    scene: Callable[[Script], None]
    expected: Expected

    def fixture(self) -> Fixture:
        script = Script(self.name)
        self.scene(script)
        return Fixture(
            id=self.name,
            schema_version=FIXTURE_VERSION,
            title=self.title,
            events=[write_fact(fact, "facts") for fact in script.facts],
            expected=self.expected,
            initial_read_model=script.initial,
            final_read_model=script.final,
        )

    def text(self) -> bytes:
        """The fixture as the file that is kept of it."""
        encoded = msgspec.json.encode(self.fixture())
        return msgspec.json.format(encoded, indent=1) + b"\n"


def fixture(
    title: str,
    status: str,
    *,
    parts: int,
    timeline: int,
    nodes: int,
    pending: int = 0,
    artifacts: int = 0,
    evidence: int = 0,
    **more: Any,
) -> Callable[[Callable[[Script], None]], FixtureScript]:
    """Make a fixture of a scene, named as the scene is, with all counts stated."""

    def make(scene: Callable[[Script], None]) -> FixtureScript:
        expected = Expected(
            status=status,
            message_part_count=parts,
            timeline_entry_count=timeline,
            graph_node_count=nodes,
            pending_action_count=pending,
            artifact_count=artifacts,
            evidence_count=evidence,
            **more,
        )
        name = getattr(scene, "__name__", "").replace("_", "-")
        return FixtureScript(name=name, title=title, scene=scene, expected=expected)

    return make
