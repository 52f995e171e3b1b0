"""The list of types: what each carries, what it means, and which facts say it in which view.

The tellers are the only source of what can be emitted; this list is held against them in both
directions. A class without a word is its own type, so the list is open at that end alone.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from factwire.edge.events import agent_payloads as agent
from factwire.edge.events import run_payloads as run
from factwire.edge.events import thing_payloads as thing
from factwire.edge.events.approval_words import APPROVAL_WORDS
from factwire.edge.events.frames import ErrorPayload
from factwire.edge.events.output_words import OUTPUT_WORDS
from factwire.edge.events.payload import EventPayload
from factwire.edge.events.run_words import RUN_WORDS
from factwire.edge.events.status_words import STATUS_WORDS
from factwire.edge.events.task_words import TASK_WORDS
from factwire.edge.events.text_words import TEXT_WORDS
from factwire.edge.events.thing_words import THING_WORDS
from factwire.edge.events.tool_words import TOOL_WORDS
from factwire.edge.events.usage_words import USAGE_WORDS
from factwire.edge.events.word import Table, View
from factwire.facts.vocabulary import UNKNOWN

VIEWS: Final[tuple[View, ...]] = ("runtime", "conversation")

WORDS: Final[Table] = {
    **THING_WORDS,
    **RUN_WORDS,
    **TEXT_WORDS,
    **TOOL_WORDS,
    **APPROVAL_WORDS,
    **OUTPUT_WORDS,
    **TASK_WORDS,
    **STATUS_WORDS,
    **USAGE_WORDS,
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
    "project.created": (thing.Project, "A project was made."),
    "project.updated": (thing.Project, "A project's name or folder changed."),
    "project.deleted": (thing.ProjectGone, "A project was removed; its facts stay."),
    "conversation.created": (thing.Conversation, "A conversation was opened."),
    "conversation.member.added": (thing.Member, "Somebody joined a conversation."),
    "thread.created": (thing.Thread, "A thread was opened."),
    "thread.updated": (thing.Thread, "A thread's title or status changed."),
    "thread.deleted": (thing.ThreadGone, "A thread was deleted."),
    "thread.forked": (thing.ThreadFork, "A thread began where another one stood."),
    "message.created": (thing.Item, "Somebody said something."),
    "message.delta": (run.MessageDelta, "An agent's message grew by a piece of text."),
    "item.created": (thing.Item, "Something new is in a thread."),
    "item.updated": (thing.Item, "Something in a thread changed; what is absent stays."),
    "runner.online": (thing.Runner, "A place where runs happen is there."),
    "runner.offline": (thing.Runner, "A place where runs happen is gone."),
    "run.queued": (run.Run, "A run was asked for and waits; it may be told twice."),
    "run.started": (run.RunChange, "A run has begun."),
    "run.finished": (run.RunChange, "A run ended well."),
    "run.cancelled": (run.RunChange, "A run was stopped."),
    "run.failed": (run.RunFailure, "A run failed; its error has a code."),
    "run.status.changed": (run.RunStatusChange, "A run went from one status to another."),
    "run.output": (run.RunOutput, "A program wrote something."),
    "run.output.batch": (run.RunOutputBatch, "A program wrote several pieces."),
    "run.persistence_error": (run.PersistenceError, "What a run did could not be recorded."),
    "approval.requested": (run.ApprovalRequest, "A person must decide."),
    "approval.decided": (run.ApprovalDecision, "A request was decided, or acted upon."),
    "artifact.created": (thing.Artifact, "A run made something."),
    "artifact.updated": (thing.Artifact, "Something that a run made changed."),
    "preview.ready": (thing.Preview, "What a run made can be looked at."),
    "preview.stopped": (thing.Preview, "A preview is no longer served."),
    "run.agent.session_init": (agent.SessionInit, "An agent's session began."),
    "run.agent.text_delta": (agent.AgentText, "An answer grew by a piece of text."),
    "run.agent.text_block": (agent.AgentText, "The whole text of an answer so far."),
    "run.agent.thinking": (agent.AgentThinking, "An agent reasons."),
    "run.agent.tool_call": (agent.ToolCall, "An agent calls a tool, or the call goes on."),
    "run.agent.tool_result": (agent.ToolResult, "A call of a tool ended."),
    "run.agent.file_change": (agent.FileChange, "A file changed."),
    "run.agent.result": (agent.AgentResult, "What a run came to."),
    "run.agent.route_decision": (
        agent.CoordinatorRouteDecision,
        "A coordinator decided who goes on.",
    ),
    "run.agent.compact_boundary": (agent.CompactBoundary, "History before this is a summary."),
    "run.agent.context_usage": (agent.ContextUsage, "How full the context is."),
    "run.agent.context_warning": (agent.ContextWarning, "The context is nearly full."),
    "run.agent.context_compaction": (agent.ContextCompaction, "Context is being folded."),
    "run.agent.api_retry": (agent.ApiRetry, "A model is asked again."),
    "run.agent.rate_limit": (agent.RateLimit, "A limit is known, near or reached."),
    "run.agent.auth_status": (agent.AuthStatus, "An agent signs in."),
    "run.agent.task_started": (agent.TaskStarted, "A task began."),
    "run.agent.task_dispatched": (agent.TaskDispatched, "A task was given to another agent."),
    "run.agent.task_progress": (agent.TaskProgress, "A task went on."),
    "run.agent.task_notification": (agent.TaskNotification, "A task ended, or its worker spoke."),
    "run.agent.sub_agents_complete": (agent.SubAgentsComplete, "All agents of a parent are done."),
    "run.agent.session_state_changed": (agent.SessionState, "The session idles, runs or waits."),
    "run.agent.status_change": (agent.StatusChange, "An agent's status or mode changed."),
    "run.agent.session_metrics": (agent.SessionMetrics, "What was used."),
    "run.agent.hook_started": (agent.HookStarted, "A hook began."),
    "run.agent.hook_progress": (agent.HookProgress, "A hook says something."),
    "run.agent.hook_response": (agent.HookResponse, "A hook ended."),
    "run.agent.tool_use_summary": (agent.ToolUseSummary, "Several calls in one sentence."),
    "run.agent.permission_requested": (agent.PermissionRequest, "An agent waits for a decision."),
    "run.agent.permission_decided": (
        agent.PermissionDecision,
        "A request of an agent was decided, or acted upon.",
    ),
    "error": (ErrorPayload, "The stream cannot go on; it is then closed."),
    UNKNOWN: (agent.UnknownFact, "A fact that no type may be given to."),
}


def _emitters(name: str, view: View) -> Iterator[str]:
    return (known for known, words in WORDS.items() if name in getattr(words, view).types)


def _event_type(name: str) -> EventType:
    payload, sentence = _LIST[name]
    views: tuple[View, ...] = tuple(view for view in VIEWS if any(_emitters(name, view)))
    classes = dict.fromkeys(found for view in VIEWS for found in _emitters(name, view))
    return EventType(
        name=name,
        payload=payload,
        sentence=sentence,
        views=views or VIEWS,
        classes=tuple(classes),
    )


EVENT_TYPES: Final[dict[str, EventType]] = {name: _event_type(name) for name in _LIST}
"""Every type by its name. `error` and `unknown` follow from no class."""

FRAME_TYPES: Final = ("checkpoint", "fact", "projection.snapshot", "projection.delta")
"""The names of what streams send that is no envelope."""
