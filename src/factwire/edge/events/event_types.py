"""Every event type, and the envelope of a fact: one fact, one envelope, the same seq.

The mappings are the only source of what can be emitted; the list of types is held against them in
both directions. An envelope is a pure function of epoch, edge, seq, fact and view, so a stream that
is resumed anywhere says the same again. A fact of a class without a mapping, or without what the
mapping needs, keeps its class as its type. No class passes for a type that is not its own: a fact
that says it is an `error` or a `checkpoint` becomes `unknown`, and so does one whose class is no
plain word.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from factwire.edge.events import event_payloads
from factwire.edge.events.approval_events import APPROVAL_EVENTS
from factwire.edge.events.event_payloads import UnknownFact
from factwire.edge.events.output_events import OUTPUT_EVENTS
from factwire.edge.events.resource_events import RESOURCE_EVENTS
from factwire.edge.events.run_events import RUN_EVENTS
from factwire.edge.events.session_events import SESSION_EVENTS
from factwire.edge.events.task_events import TASK_EVENTS
from factwire.edge.events.text_events import TEXT_EVENTS
from factwire.edge.events.tool_events import TOOL_EVENTS
from factwire.edge.events.usage_events import USAGE_EVENTS
from factwire.facts import CORRELATION_IDS, Fact
from factwire.facts.fact import ATTRIBUTES
from factwire.facts.refs import REF_LISTS
from factwire.facts.vocabulary import UNKNOWN
from factwire.journal.cursor import MARK
from factwire.serving.envelopes import (
    VERSION,
    VIEWS,
    Envelope,
    ErrorPayload,
    EventPayload,
    MappingTable,
    Scope,
    View,
    derive_trace_id,
    event_id_of,
    run_id_of,
    sent_at,
)

EVENT_MAPPINGS: Final[MappingTable] = {
    **RESOURCE_EVENTS,
    **RUN_EVENTS,
    **TEXT_EVENTS,
    **TOOL_EVENTS,
    **APPROVAL_EVENTS,
    **OUTPUT_EVENTS,
    **TASK_EVENTS,
    **SESSION_EVENTS,
    **USAGE_EVENTS,
}
"""The words of every class that has any."""


class EventType(msgspec.Struct, frozen=True, kw_only=True):
    """One type; `views` and `classes` follow from the tellers."""

    name: str
    payload: type[EventPayload]
    sentence: str
    views: tuple[View, ...]
    classes: tuple[str, ...]


_LIST: Final[dict[str, tuple[type[EventPayload], str]]] = {
    "project.created": (event_payloads.ProjectEvent, "A project was made."),
    "project.updated": (event_payloads.ProjectEvent, "A project's name or folder changed."),
    "project.deleted": (event_payloads.ProjectGone, "A project was removed; its facts stay."),
    "conversation.created": (event_payloads.ConversationEvent, "A conversation was opened."),
    "conversation.member.added": (event_payloads.Member, "Somebody joined a conversation."),
    "thread.created": (event_payloads.ThreadEvent, "A thread was opened."),
    "thread.updated": (event_payloads.ThreadEvent, "A thread's title or status changed."),
    "thread.deleted": (event_payloads.ThreadGone, "A thread was deleted."),
    "thread.forked": (event_payloads.ThreadFork, "A thread began where another one stood."),
    "message.created": (event_payloads.Item, "Somebody said something."),
    "message.delta": (event_payloads.MessageDelta, "An agent's message grew by a piece of text."),
    "item.created": (event_payloads.Item, "Something new is in a thread."),
    "item.updated": (event_payloads.Item, "Something in a thread changed; what is absent stays."),
    "runner.online": (event_payloads.Runner, "A place where runs happen is there."),
    "runner.offline": (event_payloads.Runner, "A place where runs happen is gone."),
    "run.queued": (event_payloads.RunEvent, "A run was asked for and waits; it may be told twice."),
    "run.started": (event_payloads.RunChange, "A run has begun."),
    "run.finished": (event_payloads.RunChange, "A run ended well."),
    "run.cancelled": (event_payloads.RunChange, "A run was stopped."),
    "run.failed": (event_payloads.RunFailure, "A run failed; its error has a code."),
    "run.status.changed": (
        event_payloads.RunStatusChange,
        "A run went from one status to another.",
    ),
    "run.output": (event_payloads.RunOutput, "A program wrote something."),
    "run.output.batch": (event_payloads.RunOutputBatch, "A program wrote several pieces."),
    "run.persistence_error": (
        event_payloads.PersistenceError,
        "What a run did could not be recorded.",
    ),
    "approval.requested": (event_payloads.ApprovalRequest, "A person must decide."),
    "approval.decided": (event_payloads.ApprovalDecision, "A request was decided, or acted upon."),
    "artifact.created": (event_payloads.ArtifactEvent, "A run made something."),
    "artifact.updated": (event_payloads.ArtifactEvent, "Something that a run made changed."),
    "preview.ready": (event_payloads.PreviewEvent, "What a run made can be looked at."),
    "preview.stopped": (event_payloads.PreviewEvent, "A preview is no longer served."),
    "run.agent.session_init": (event_payloads.SessionInit, "An agent's session began."),
    "run.agent.text_delta": (event_payloads.AgentText, "An answer grew by a piece of text."),
    "run.agent.text_block": (event_payloads.AgentText, "The whole text of an answer so far."),
    "run.agent.thinking": (event_payloads.AgentThinking, "An agent reasons."),
    "run.agent.tool_call": (event_payloads.ToolCall, "An agent calls a tool, or the call goes on."),
    "run.agent.tool_result": (event_payloads.ToolResult, "A call of a tool ended."),
    "run.agent.file_change": (event_payloads.FileChange, "A file changed."),
    "run.agent.result": (event_payloads.AgentResult, "What a run came to."),
    "run.agent.route_decision": (
        event_payloads.CoordinatorRouteDecision,
        "A coordinator decided who goes on.",
    ),
    "run.agent.compact_boundary": (
        event_payloads.CompactBoundary,
        "History before this is a summary.",
    ),
    "run.agent.context_usage": (event_payloads.ContextUsage, "How full the context is."),
    "run.agent.context_warning": (event_payloads.ContextWarning, "The context is nearly full."),
    "run.agent.context_compaction": (event_payloads.ContextCompaction, "Context is being folded."),
    "run.agent.api_retry": (event_payloads.ApiRetry, "A model is asked again."),
    "run.agent.rate_limit": (event_payloads.RateLimit, "A limit is known, near or reached."),
    "run.agent.auth_status": (event_payloads.AuthStatus, "An agent signs in."),
    "run.agent.task_started": (event_payloads.TaskStarted, "A task began."),
    "run.agent.task_dispatched": (
        event_payloads.TaskDispatched,
        "A task was given to another agent.",
    ),
    "run.agent.task_progress": (event_payloads.TaskProgress, "A task went on."),
    "run.agent.task_notification": (
        event_payloads.TaskNotification,
        "A task ended, or its worker spoke.",
    ),
    "run.agent.sub_agents_complete": (
        event_payloads.SubAgentsComplete,
        "All agents of a parent are done.",
    ),
    "run.agent.session_state_changed": (
        event_payloads.SessionState,
        "The session idles, runs or waits.",
    ),
    "run.agent.status_change": (event_payloads.StatusChange, "An agent's status or mode changed."),
    "run.agent.session_metrics": (event_payloads.SessionMetrics, "What was used."),
    "run.agent.hook_started": (event_payloads.HookStarted, "A hook began."),
    "run.agent.hook_progress": (event_payloads.HookProgress, "A hook says something."),
    "run.agent.hook_response": (event_payloads.HookResponse, "A hook ended."),
    "run.agent.tool_use_summary": (event_payloads.ToolUseSummary, "Several calls in one sentence."),
    "run.agent.permission_requested": (
        event_payloads.PermissionRequest,
        "An agent waits for a decision.",
    ),
    "run.agent.permission_decided": (
        event_payloads.PermissionDecision,
        "A request of an agent was decided, or acted upon.",
    ),
    "error": (ErrorPayload, "The stream cannot go on; it is then closed."),
    UNKNOWN: (event_payloads.UnknownFact, "A fact that no type may be given to."),
}


def _classes_emitting(name: str, view: View) -> Iterator[str]:
    return (known for known, words in EVENT_MAPPINGS.items() if name in getattr(words, view).types)


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

_SCOPE_IDS: Final[dict[type, tuple[str, ...]]] = {
    kind.payload: tuple(
        correlation_id
        for correlation_id in kind.payload.__struct_fields__
        if correlation_id in _SCOPE_FIELDS
    )
    for kind in EVENT_TYPES.values()
}
"""The ids of a scope that each payload has, too."""

_MAPPERS: Final = {
    "runtime": {
        correlation_id: words.runtime.to_event for correlation_id, words in EVENT_MAPPINGS.items()
    },
    "conversation": {
        correlation_id: words.conversation.to_event
        for correlation_id, words in EVENT_MAPPINGS.items()
    },
}
_encode = msgspec.json.Encoder().encode


def build_envelope(
    seq: int, fact: Fact, view: View = "runtime", *, epoch: str, edge_id: str
) -> Envelope:
    """The envelope of the fact at `seq` of the journal's `epoch`."""
    to_event = _MAPPERS[view].get(fact.event_class or "")
    name, payload = (to_event and to_event(fact)) or _to_own_class(fact)
    scope = _build_scope(fact, payload, edge_id)
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


def _build_scope(fact: Fact, payload: object, edge_id: str) -> Scope:
    ids = _SCOPE_IDS.get(type(payload))
    if ids:
        return _merge_scope(fact, payload, edge_id, ids)
    return Scope(
        project_id=fact.project_id,
        conversation_id=fact.conversation_id,
        thread_id=fact.thread_id,
        run_id=fact.run_id or run_id_of(fact),
        edge_id=fact.edge_id or edge_id,
        item_id=fact.item_id,
    )


def _merge_scope(fact: Fact, payload: object, edge_id: str, names: tuple[str, ...]) -> Scope:
    """Ids of the fact, and those that its payload in other words adds."""
    ids = {name: getattr(fact, name) or getattr(payload, name) for name in names}
    return Scope(
        project_id=ids.get("project_id", fact.project_id),
        conversation_id=ids.get("conversation_id", fact.conversation_id),
        thread_id=ids.get("thread_id", fact.thread_id),
        run_id=ids.get("run_id") or run_id_of(fact),
        edge_id=fact.edge_id or edge_id,
        item_id=ids.get("item_id", fact.item_id),
    )


def _to_own_class(fact: Fact) -> tuple[str, Any]:
    """A fact under its own class, with the ids that the scope has no place for."""
    name = _own_type(fact.event_class or "")
    payload = _payload_with_ids(fact)
    if name is None:
        return UNKNOWN, UnknownFact(event_class=fact.event_class, payload=payload)
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
