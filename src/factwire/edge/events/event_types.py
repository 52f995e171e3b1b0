"""Every event type, and the envelope of a fact: one fact, one envelope, the same seq.

The mappings are the only source of what can be emitted; the list of types is held against them in
both directions. An envelope is a pure function of epoch, edge, seq, fact, view and the place that
earlier facts gave the thread, so a stream that is resumed anywhere says the same again. A fact of a
class without a mapping, or without what the mapping needs, keeps its class as its type. No class
passes for a type that is not its own: a fact that says it is an `error` or a `checkpoint` becomes
`unknown`, and so does one whose class is no plain word.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, Final

import msgspec

from factwire.edge.events import (
    approval_events,
    output_events,
    resource_events,
    run_events,
    session_events,
    task_events,
    text_events,
    tool_events,
    usage_events,
)
from factwire.facts import CORRELATION_IDS, KNOWN_CLASSES, Fact
from factwire.facts.fact import ATTRIBUTES
from factwire.facts.refs import REF_LISTS
from factwire.facts.resources import Item
from factwire.facts.vocabulary import UNKNOWN
from factwire.journal.cursor import MARK
from factwire.serving.envelopes import (
    VERSION,
    VIEWS,
    Envelope,
    ErrorPayload,
    EventPayload,
    MappingTable,
    PlaceOf,
    Scope,
    ScopeIds,
    View,
    derive_trace_id,
    event_id_of,
    has_no_place,
    scope_ids_of,
    sent_at,
)


class UnknownFactEvent(EventPayload, frozen=True):
    """A fact without a class, or with one that would pass for a word it has no right to."""

    event_class: str | None = None
    payload: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


EVENT_MAPPINGS: Final[MappingTable] = {
    **resource_events.RESOURCE_EVENTS,
    **run_events.RUN_EVENTS,
    **text_events.TEXT_EVENTS,
    **tool_events.TOOL_EVENTS,
    **approval_events.APPROVAL_EVENTS,
    **output_events.OUTPUT_EVENTS,
    **task_events.TASK_EVENTS,
    **session_events.SESSION_EVENTS,
    **usage_events.USAGE_EVENTS,
    "run.status": run_events.add_cancelling(session_events.SESSION_EVENTS["run.status"]),
}
"""The mappings of every class that has any."""


class EventType(msgspec.Struct, frozen=True, kw_only=True):
    """One type; `views` and `classes` follow from the mappings."""

    name: str
    payload: type[EventPayload]
    sentence: str
    views: tuple[View, ...]
    classes: tuple[str, ...]


_LIST: Final[dict[str, tuple[type[EventPayload], str]]] = {
    "project.created": (resource_events.ProjectEvent, "A project was created."),
    "project.updated": (resource_events.ProjectEvent, "A project's name or folder changed."),
    "project.deleted": (resource_events.ProjectGone, "A project was removed; its facts stay."),
    "conversation.created": (resource_events.ConversationEvent, "A conversation was opened."),
    "conversation.member.added": (resource_events.Member, "A member joined a conversation."),
    "thread.created": (resource_events.ThreadEvent, "A thread was created."),
    "thread.updated": (resource_events.ThreadEvent, "A thread's title or status changed."),
    "thread.deleted": (resource_events.ThreadGone, "A thread was deleted."),
    "thread.forked": (resource_events.ThreadFork, "A thread was forked from another one."),
    "message.created": (Item, "A message was sent."),
    "message.delta": (text_events.MessageDelta, "A piece of text was added to an agent's message."),
    "item.created": (Item, "An item was added to a thread."),
    "item.updated": (Item, "An item of a thread changed; absent fields are unchanged."),
    "runner.online": (resource_events.Runner, "A runner became available."),
    "runner.offline": (resource_events.Runner, "A runner is no longer available."),
    "run.queued": (run_events.RunEvent, "A run was requested and is waiting; may be sent twice."),
    "run.started": (run_events.RunChange, "A run started."),
    "run.finished": (run_events.RunChange, "A run completed."),
    "run.cancelled": (run_events.RunChange, "A run was cancelled."),
    "run.failed": (run_events.RunFailure, "A run failed; its error has a code."),
    "run.status.changed": (
        run_events.RunStatusChange,
        "The status of a run changed.",
    ),
    "run.output": (output_events.RunOutput, "A program wrote output."),
    "run.output.batch": (output_events.RunOutputBatch, "A program wrote several pieces of output."),
    "run.persistence_error": (
        resource_events.PersistenceError,
        "The activity of a run could not be recorded.",
    ),
    "approval.requested": (approval_events.ApprovalRequest, "An approval was requested."),
    "approval.decided": (approval_events.ApprovalDecision, "An approval was decided or applied."),
    "artifact.created": (output_events.ArtifactEvent, "A run created an artifact."),
    "artifact.updated": (output_events.ArtifactEvent, "A run changed an artifact."),
    "preview.ready": (resource_events.PreviewEvent, "A preview of a run's result is available."),
    "preview.stopped": (resource_events.PreviewEvent, "A preview is no longer served."),
    "run.agent.session_init": (session_events.SessionInit, "An agent's session started."),
    "run.agent.text_delta": (text_events.AgentText, "A piece of text was added to an answer."),
    "run.agent.text_block": (text_events.AgentText, "The complete text of an answer so far."),
    "run.agent.thinking": (text_events.AgentThinking, "An agent is reasoning."),
    "run.agent.tool_call": (
        tool_events.ToolCall,
        "An agent called a tool, or the call progressed.",
    ),
    "run.agent.tool_result": (tool_events.ToolResult, "A tool call ended."),
    "run.agent.file_change": (tool_events.FileChange, "A file changed."),
    "run.agent.result": (session_events.AgentResult, "The result of a run."),
    "run.agent.route_decision": (
        session_events.CoordinatorRouteDecision,
        "A coordinator decided which agent continues.",
    ),
    "run.agent.compact_boundary": (
        usage_events.CompactBoundary,
        "Earlier history was replaced by a summary.",
    ),
    "run.agent.context_usage": (usage_events.ContextUsage, "How full the context is."),
    "run.agent.context_warning": (usage_events.ContextWarning, "The context is nearly full."),
    "run.agent.context_compaction": (
        usage_events.ContextCompaction,
        "The context is being compacted.",
    ),
    "run.agent.api_retry": (session_events.ApiRetry, "A model request is being retried."),
    "run.agent.rate_limit": (
        usage_events.RateLimit,
        "A rate limit was reported, is near or was reached.",
    ),
    "run.agent.auth_status": (session_events.AuthStatus, "An agent is signing in."),
    "run.agent.task_started": (task_events.TaskStarted, "A task started."),
    "run.agent.task_dispatched": (
        task_events.TaskDispatched,
        "A task was assigned to another agent.",
    ),
    "run.agent.task_progress": (task_events.TaskProgress, "A task progressed."),
    "run.agent.task_notification": (
        task_events.TaskNotification,
        "A task ended, or its worker sent a message.",
    ),
    "run.agent.sub_agents_complete": (
        task_events.SubAgentsComplete,
        "All subagents of an agent are done.",
    ),
    "run.agent.session_state_changed": (
        session_events.SessionState,
        "The session is idle, running or waiting.",
    ),
    "run.agent.status_change": (session_events.StatusChange, "An agent's status or mode changed."),
    "run.agent.session_metrics": (usage_events.SessionMetrics, "Usage of the session."),
    "run.agent.hook_started": (session_events.HookStarted, "A hook started."),
    "run.agent.hook_progress": (session_events.HookProgress, "A hook reported progress."),
    "run.agent.hook_response": (session_events.HookResponse, "A hook ended."),
    "run.agent.tool_use_summary": (
        session_events.ToolUseSummary,
        "A one-sentence summary of several tool calls.",
    ),
    "run.agent.permission_requested": (
        approval_events.PermissionRequest,
        "An agent is waiting for a decision.",
    ),
    "run.agent.permission_decided": (
        approval_events.PermissionDecision,
        "A permission request was decided or applied.",
    ),
    "error": (ErrorPayload, "The stream cannot continue and is closed."),
    UNKNOWN: (UnknownFactEvent, "A fact that has no event type."),
}


def _classes_emitting(name: str, view: View) -> Iterator[str]:
    return (
        known for known, mappings in EVENT_MAPPINGS.items() if name in getattr(mappings, view).types
    )


def _build_event_type(name: str) -> EventType:
    payload, sentence = _LIST[name]
    views: tuple[View, ...] = tuple(view for view in VIEWS if any(_classes_emitting(name, view)))
    classes = dict.fromkeys(found for view in VIEWS for found in _classes_emitting(name, view))
    return EventType(
        name=name,
        payload=payload,
        sentence=sentence,
        views=views or VIEWS,
        classes=tuple(classes),
    )


EVENT_TYPES: Final[dict[str, EventType]] = {name: _build_event_type(name) for name in _LIST}
"""Every type by its name. `error` and `unknown` follow from no class."""


@cache
def types_of_view(view: View) -> frozenset[str]:
    """Every type that can be asked for in a view; a class that has no event keeps its own name."""
    named = (name for name, kind in EVENT_TYPES.items() if view in kind.views)
    return frozenset((*named, *(KNOWN_CLASSES.keys() - EVENT_TYPES.keys())))


FRAME_TYPES: Final = ("checkpoint", "fact", "projection.snapshot", "projection.delta")
"""The names of what streams send that is no envelope."""


_PLAIN: Final = re.compile(r"[!-~]{1,128}")
"""Classes that may stand in a line of an event stream, and in a URL once quoted."""

_RESERVED: Final = frozenset((*EVENT_TYPES, *FRAME_TYPES))
_SCOPE_FIELDS: Final = frozenset(Scope.__struct_fields__)
_ELSEWHERE: Final = _SCOPE_FIELDS | {"trace_id", "runtime_id"}
_IDS: Final = tuple(
    (correlation_id, ATTRIBUTES[correlation_id])
    for correlation_id in CORRELATION_IDS
    if ATTRIBUTES[correlation_id] not in _ELSEWHERE
)
"""The ids that an envelope has no place for outside its payload."""

_ITEM_PAYLOADS: Final = frozenset(
    kind.payload for kind in EVENT_TYPES.values() if "item_id" in kind.payload.__struct_fields__
)
"""The payloads that are about an item."""

_MAPPERS: Final = {
    "runtime": {
        correlation_id: mappings.runtime.to_event
        for correlation_id, mappings in EVENT_MAPPINGS.items()
    },
    "conversation": {
        correlation_id: mappings.conversation.to_event
        for correlation_id, mappings in EVENT_MAPPINGS.items()
    },
}
_encode = msgspec.json.Encoder().encode


def build_envelope(
    seq: int,
    fact: Fact,
    view: View = "runtime",
    *,
    epoch: str,
    edge_id: str,
    place_of: PlaceOf = has_no_place,
) -> Envelope:
    """The envelope of the fact at `seq` of the journal's `epoch`."""
    to_event = _MAPPERS[view].get(fact.event_class or "")
    name, payload = (to_event and to_event(fact)) or _to_own_class(fact)
    scope = _build_scope(scope_ids_of(seq, fact, place_of), fact, payload, edge_id)
    return Envelope(
        version=VERSION,
        id=event_id_of(fact.id),
        seq=seq,
        type=name,
        scope=scope,
        trace_id=fact.trace_id or derive_trace_id(scope.run_id or scope.thread_id or fact.id),
        sent_at=sent_at(fact.created_at),
        payload=payload,
        # What `str(Cursor(epoch, seq))` gives; here it is written for every event.
        cursor=f"{MARK}{epoch}.{seq:016d}",
    )


def encode(seq: int, fact: Fact, view: View = "runtime", *, epoch: str, edge_id: str) -> bytes:
    """The envelope of the fact at `seq`, as it is sent."""
    return _encode(build_envelope(seq, fact, view, epoch=epoch, edge_id=edge_id))


def encode_envelope(envelope: Envelope) -> bytes:
    """An envelope as it is sent."""
    return _encode(envelope)


def _build_scope(ids: ScopeIds, fact: Fact, payload: object, edge_id: str) -> Scope:
    item_id = fact.item_id
    if item_id is None and type(payload) in _ITEM_PAYLOADS:
        item_id = getattr(payload, "item_id", None)
    return Scope(
        project_id=ids.project_id,
        conversation_id=ids.conversation_id,
        thread_id=ids.thread_id,
        run_id=ids.run_id,
        edge_id=fact.edge_id or edge_id,
        item_id=item_id,
    )


def _to_own_class(fact: Fact) -> tuple[str, Any]:
    """A fact under its own class, with the ids that the scope has no place for."""
    name = _own_type(fact.event_class or "")
    payload = _payload_with_ids(fact)
    if name is None:
        return UNKNOWN, UnknownFactEvent(event_class=fact.event_class, payload=payload)
    return name, payload


@lru_cache(maxsize=1_024)
def _own_type(event_class: str) -> str | None:
    return event_class if _PLAIN.fullmatch(event_class) and event_class not in _RESERVED else None


def _payload_with_ids(fact: Fact) -> dict[str, Any]:
    ids = {name: value for name, attribute in _IDS if (value := getattr(fact, attribute))}
    refs = {
        name: list(found)
        for attribute, name in REF_LISTS.items()
        if (found := getattr(fact, attribute))
    }
    return {**ids, **refs, **fact.payload}
