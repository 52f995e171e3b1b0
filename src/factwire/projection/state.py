"""`ProjectionState`: everything a screen shows of one thread, and how it is saved.

Every root is always there; what no fact has said is absent or reads `unknown`. A snapshot is what
a screen needs. A checkpoint also holds what the projection needs to take the next fact: what it
remembers of those before, and what it holds back.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Any, Final, cast

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.issues import FactError
from factwire.facts.shapes import decode_object, decode_plain, encode_fact, read_checked_fact
from factwire.projection import (
    actions,
    artifacts,
    coding,
    diagnostics,
    graph,
    hydration,
    model_usage,
    subagents,
    team,
    thread_status,
)
from factwire.projection.actions import Action, Permissions
from factwire.projection.artifacts import ArtifactState, Evidence
from factwire.projection.coding import Hook, Process
from factwire.projection.hydration import BEFORE_ANY_SEQUENCE, Lane, RebuildPoint, RecentFacts
from factwire.projection.messages import Message
from factwire.projection.reasoning import Plan
from factwire.projection.tasks import Job, ProjectedTask
from factwire.projection.timeline import TimelineEntry
from factwire.projection.tools import Tool
from factwire.projection.turns import ProjectedTurn
from factwire.projection.views import View


class RestoredFrom(View):
    """The read model that a state was restored from or last repaired with, if any.

    `stale` is set when the last one offered was older than the state, and was left aside.
    `earlier_messages` is how many messages came before those that it carried, `extensions` what it
    carried beyond the fields of this version.
    """

    event_cursor: int | None = None
    history_cursor: str | None = None
    status: str | None = None
    stale: bool | None = None
    earlier_messages: int | None = None
    extensions: dict[str, Any] | None = None


_state_encoder: Final = msgspec.json.Encoder(enc_hook=str)

STATE_VERSION: Final = "factwire-projection/v2"


class ProjectionState(View):
    """The roots. `shared` is the application's own state, which `state.delta` patches;
    `agent_sessions` is the name under which each outside agent knows this thread, and
    `agent_session_usage` what it had counted there when it last said so.
    """

    schema_version: str
    runtime: thread_status.RuntimeStatus
    messages: list[Message]
    plans: dict[str, Plan]
    turns: dict[str, ProjectedTurn]
    timeline: list[TimelineEntry]
    graph: graph.Graph
    tools: dict[str, Tool]
    actions: dict[str, Action]
    artifacts: dict[str, ArtifactState]
    evidence: Evidence
    diagnostics: diagnostics.Diagnostics
    tasks: dict[str, ProjectedTask]
    jobs: dict[str, Job]
    queue: thread_status.Queue
    context: model_usage.Context
    subagents: subagents.Subagents
    team_workbench: team.TeamWorkbench
    permissions: Permissions
    metrics: model_usage.Metrics
    processes: dict[str, Process]
    hooks: dict[str, Hook]
    coding: coding.Coding
    shared: dict[str, Any]
    hydration: hydration.Hydration
    read_model: RestoredFrom
    runtime_id: str | None = None
    session_id: str | None = None
    thread_id: str | None = None
    title: str | None = None
    agent_sessions: dict[str, str] | None = None
    agent_session_usage: dict[str, dict[str, Any]] | None = None


def empty_state(thread_id: str | None = None) -> ProjectionState:
    """The state of a thread of which no fact is known."""
    return ProjectionState(
        schema_version=STATE_VERSION,
        thread_id=thread_id,
        runtime=thread_status.idle_runtime(),
        messages=[],
        plans={},
        turns={},
        timeline=[],
        graph=graph.empty_graph(),
        tools={},
        actions={},
        artifacts={},
        evidence=artifacts.empty_evidence(),
        diagnostics=diagnostics.empty_diagnostics(),
        tasks={},
        jobs={},
        queue=thread_status.empty_queue(),
        context=model_usage.empty_context(),
        subagents=subagents.empty_subagents(),
        team_workbench=team.empty_team(),
        permissions=actions.empty_permissions(),
        metrics=model_usage.empty_metrics(),
        processes={},
        hooks={},
        coding=coding.empty_coding(),
        shared={},
        hydration=hydration.idle_hydration(),
        read_model=RestoredFrom(),
    )


def encode_state(state: ProjectionState) -> bytes:
    """The state as JSON."""
    return _state_encoder.encode(state)


def decode_state(data: bytes) -> ProjectionState:
    """The state that `encode_state` wrote."""
    return msgspec.json.decode(data, type=ProjectionState, dec_hook=_encode_text)


def _encode_text(kind: type, value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {type(value).__name__}")  # noqa: TRY004
    return kind(value)


class UnreadableCheckpoint(ValueError):
    """Bytes that are no checkpoint of this version; the facts themselves must be projected."""

    code = "unreadable_checkpoint"


class SavedLane(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One lane, with the facts it holds as their bytes."""

    thread_id: str | None
    start: int | None
    expected: int | None
    held: list[bytes]
    lost: list[tuple[int, int]]
    covered: list[tuple[int, int]] = []
    covered_messages: int = BEFORE_ANY_SEQUENCE
    uncovered: list[tuple[int, int]] = []
    skipped: list[tuple[int, int]] = []
    earlier: list[tuple[int, int]] = []
    is_beside: bool = False
    beside: "SavedLane | None" = None
    runs: int = 0
    shared: int = BEFORE_ANY_SEQUENCE


class ProjectionCheckpoint(msgspec.Struct, kw_only=True):
    """Everything that a projection consists of. The first of `lanes` is the main one. `taken` are
    the facts since the oldest of `points`, `waiting` those of threads that are nobody's child yet.
    """

    version: str
    state: ProjectionState
    lanes: list[SavedLane]
    current: str | None
    ids: list[list[str]]
    bodies: list[dict[str, bytes]]
    points: list[RebuildPoint]
    taken: list[bytes]
    first_thread: str | None
    parent_thread: str | None
    waiting: list[bytes]


class _EncodedCheckpoint(msgspec.Struct, kw_only=True):
    """A checkpoint on its way. The state is JSON, which has whole numbers of any size."""

    version: str
    state: bytes
    lanes: Annotated[list[SavedLane], msgspec.Meta(min_length=1)]
    current: str | None
    ids: tuple[list[str], list[str]]
    bodies: tuple[dict[str, bytes], dict[str, bytes]]
    points: list[RebuildPoint] = []
    taken: list[bytes] = []
    first_thread: str | None = None
    parent_thread: str | None = None
    waiting: list[bytes] = []


class _VersionOnly(msgspec.Struct):
    version: str


@lru_cache(maxsize=1)
def checkpoint_version() -> str:
    """The version of the state and a digest of all types that a checkpoint consists of, so that
    one of another shape is refused, however it would decode.
    """
    _, types = msgspec.json.schema_components(
        (_EncodedCheckpoint, ProjectionState), schema_hook=lambda _: {"type": "string"}
    )
    shape = msgspec.json.encode(_drop_descriptions(types), order="sorted")
    return f"{STATE_VERSION}/{blake2b(shape, digest_size=8).hexdigest()}"


def _drop_descriptions(schema: Any) -> Any:
    if isinstance(schema, dict):
        fields = cast("dict[str, Any]", schema).items()
        return {
            name: _drop_descriptions(value)
            for name, value in fields
            if name != "description" or not isinstance(value, str)
        }
    if isinstance(schema, list):
        return [_drop_descriptions(value) for value in cast("list[Any]", schema)]
    return schema


_checkpoint_encoder: Final = msgspec.msgpack.Encoder()
_version_decoder: Final = msgspec.msgpack.Decoder(_VersionOnly)
_checkpoint_decoder: Final = msgspec.msgpack.Decoder(_EncodedCheckpoint)


def encode_checkpoint(checkpoint: ProjectionCheckpoint) -> bytes:
    fields = {name: getattr(checkpoint, name) for name in ProjectionCheckpoint.__struct_fields__}
    return _checkpoint_encoder.encode({**fields, "state": encode_state(checkpoint.state)})


def decode_checkpoint(data: bytes) -> ProjectionCheckpoint:
    """What `encode_checkpoint` wrote; raises `UnreadableCheckpoint` for anything else."""
    try:
        version = _version_decoder.decode(data).version
        if version != checkpoint_version():
            raise ValueError(f"expected version {checkpoint_version()}, got {version}")  # noqa: TRY301
        saved = _checkpoint_decoder.decode(data)
        state = decode_state(saved.state)
        for lane in saved.lanes:
            restore_lane(lane)
        for line in (*saved.taken, *saved.waiting):
            _restore_fact(line)
    except (msgspec.DecodeError, FactError, RecursionError, ValueError) as error:
        raise UnreadableCheckpoint(f"not a checkpoint of this version: {error}") from error
    return ProjectionCheckpoint(
        version=saved.version,
        state=state,
        lanes=saved.lanes,
        current=saved.current,
        ids=list(saved.ids),
        bodies=list(saved.bodies),
        points=saved.points,
        taken=saved.taken,
        first_thread=saved.first_thread,
        parent_thread=saved.parent_thread,
        waiting=saved.waiting,
    )


def save_lane(lane: Lane) -> SavedLane:
    return SavedLane(
        thread_id=lane.thread_id,
        start=lane.start,
        expected=lane.expected,
        held=[encode_fact(fact) for fact in lane.held.values()],
        lost=lane.lost,
        covered=lane.covered,
        covered_messages=lane.covered_messages,
        uncovered=lane.uncovered,
        skipped=lane.skipped,
        earlier=lane.earlier,
        is_beside=lane.is_beside,
        beside=None if lane.beside is None else save_lane(lane.beside),
        runs=lane.runs,
        shared=lane.shared,
    )


def _restore_fact(line: bytes) -> Fact:
    """A fact that was taken once; it may lack what only a gate asks for, such as a sequence."""
    return decode_plain(line) or read_checked_fact(decode_object(line), "facts")


def restore_lane(saved: SavedLane) -> Lane:
    lane = Lane(saved.thread_id, saved.start, is_beside=saved.is_beside)
    lane.expected = saved.expected
    lane.lost = list(saved.lost)
    lane.covered = list(saved.covered)
    lane.covered_messages = saved.covered_messages
    lane.uncovered = list(saved.uncovered)
    lane.skipped = list(saved.skipped)
    lane.earlier = list(saved.earlier)
    lane.beside = None if saved.beside is None else restore_lane(saved.beside)
    lane.runs, lane.shared = saved.runs, saved.shared
    for line in saved.held:
        fact = _restore_fact(line)
        lane.hold(fact, fact.sequence or 0)
    return lane


def restore_recent(checkpoint: ProjectionCheckpoint) -> RecentFacts:
    recent = RecentFacts()
    recent.load(checkpoint.ids, checkpoint.bodies)
    recent.remember_whole([_restore_fact(line) for line in checkpoint.taken])
    return recent


def restore_waiting(checkpoint: ProjectionCheckpoint) -> list[Fact]:
    return [_restore_fact(line) for line in checkpoint.waiting]
