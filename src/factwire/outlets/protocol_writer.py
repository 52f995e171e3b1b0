"""`ProtocolWriter`: what an outside protocol can be told, and the values that it is told with.

One method for each thing that happens in a turn. A writer knows its protocol and nothing of
facts' lifecycles; a `Translator` calls it in an order that makes sense, and closes nothing that is
not open. Each name on a wire is used for one thing in its run. Of a streamed text only a digest is
kept, which tells whether a whole text goes on where its pieces ended. A note is a fact that neither
protocol has a word for.
"""

from hashlib import blake2b
from typing import Any, Final, Protocol

import msgspec

from factwire.facts import Fact, id_of
from factwire.facts.json_values import object_at, text_at

NAMES_REMEMBERED: Final = 10_000
"""Ids that one run has used on the wire; none of them names a second thing. Past this many the
oldest is forgotten, so that a run of any length takes bounded memory.
"""


class WireNames:
    """The names that one run has used, each with what it was used for."""

    def __init__(self) -> None:
        self._used: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._of: dict[str, list[str]] = {}

    def assign(self, preferred: str, what: str = "") -> str:
        """A name like `wanted` that nothing has; `what` is what the name is of."""
        count = self._counts.get(preferred, 0) + 1
        while (name := f"{preferred}:{count}" if count > 1 else preferred) in self._used:
            count += 1
        self._counts[preferred] = count
        self._used[name] = what
        self._of.setdefault(what, []).append(name)
        if len(self._used) > NAMES_REMEMBERED:
            self._forget()
        return name

    def names_of(self, what: str) -> list[str]:
        """All names of a thing, in the order in which they were given."""
        return list(self._of.get(what, ()))

    def _forget(self) -> None:
        oldest = next(iter(self._used))
        what = self._used.pop(oldest)
        if len(self._counts) > NAMES_REMEMBERED:
            del self._counts[next(iter(self._counts))]
        names = self._of[what]
        names.remove(oldest)
        if not names:
            del self._of[what]


class StreamedText:
    """What was streamed of one text so far. `message_id` is the message that it belongs to, and
    `names` are what it was called on the wire.
    """

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.names: list[str] = []
        self._length = 0
        self._digest = blake2b(digest_size=16)

    def add(self, piece: str) -> None:
        self._length += len(piece)
        self._digest.update(piece.encode("utf-8", "surrogatepass"))

    def rest_of(self, whole: str) -> str | None:
        """What of a whole text was not streamed yet; None if something else was."""
        digest = blake2b(whole[: self._length].encode("utf-8", "surrogatepass"), digest_size=16)
        if len(whole) < self._length or digest.digest() != self._digest.digest():
            return None
        return whole[self._length :]


APPROVALS: Final = {
    "allow": True,
    "allowed": True,
    "approve": True,
    "approved": True,
    "deny": False,
    "denied": False,
    "reject": False,
    "rejected": False,
}
"""Decisions that are a plain yes or no; any other word is told as it stands."""

UNNAMED_TOOL: Final = "tool"
"""The name of a tool that nobody named, where a protocol needs one."""

_INSTEAD_OF_OUTPUT: Final = ("summary", "outputRef", "exitCode")


class OpenCall(msgspec.Struct, kw_only=True):
    """A call that is open. `is_whole` says that a client has its arguments."""

    call_id: str
    name: str
    title: str | None = None
    args: Any = None
    speaker: str | None = None
    is_whole: bool = False
    is_denied: bool = False


class UnansweredAction(msgspec.Struct, frozen=True, kw_only=True):
    """A question that a person has not answered."""

    action_id: str
    call_id: str | None
    speaker: str | None
    payload: dict[str, Any]

    @property
    def action_type(self) -> str:
        return text_at(self.payload, "actionType") or "structured_input"

    @property
    def prompt(self) -> str | None:
        return text_at(self.payload, "prompt", "message")


class ActionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How a question was closed; without a decision nobody answered it."""

    decision: str | None
    reason: str | None = None
    response: Any = None
    has_expired: bool = False

    @property
    def is_approval(self) -> bool | None:
        """Yes or no, if it is one of them."""
        return APPROVALS.get(self.decision or "")


def result_of(fact: Fact) -> Any:
    """What a call gave: its output, or what stands for an output that is elsewhere."""
    payload = fact.payload
    if payload.get("output") is not None:
        return payload["output"]
    return {
        name: payload[name] for name in _INSTEAD_OF_OUTPUT if payload.get(name) is not None
    } or None


def failure_of(fact: Fact) -> tuple[str, str]:
    """The category of a failure, and a sentence about it."""
    category = text_at(fact.payload, "failureCategory") or "tool_error"
    return category, text_at(fact.payload, "message", "summary") or category


def has_failed(fact: Fact) -> bool:
    """Whether something ended badly, by its class or by its status."""
    return (fact.event_class or "").endswith(".failed") or fact.status == "failed"


def failure_details(fact: Fact | None, category: str) -> dict[str, str]:
    """What is to be known of a failure besides its message."""
    hint = text_at(fact.payload, "recoveryHint") if fact is not None else None
    return {"failureCategory": category, **({"recoveryHint": hint} if hint else {})}


def answer_of(fact: Fact) -> ActionAnswer:
    """What was decided, or why nothing was."""
    payload = fact.payload
    closed = fact.event_class == "action.resolved"
    fallback = None if closed else (fact.event_class or "").rpartition(".")[2]
    return ActionAnswer(
        decision=(text_at(payload, "decision") or "unknown") if closed else None,
        reason=text_at(payload, "reason") or fallback,
        response=payload.get("response"),
        has_expired=fact.event_class == "action.expired",
    )


def usage_of(payload: dict[str, Any]) -> dict[str, Any]:
    """The counts of a payload that counts something."""
    return {name: payload[name] for name in _COUNTS if _is_count(payload.get(name))}


def shared_patch_of(fact: Fact) -> list[dict[str, Any]]:
    """The operations of a patch that are about the application's own state."""
    operations = [
        object_at(each)
        for each in fact.payload.get("patch") or fact.payload.get("operations") or ()
    ]
    return [
        {
            **operation,
            **{
                name: path.removeprefix(_SHARED)
                for name in ("path", "from")
                if (path := text_at(operation, name))
            },
        }
        for operation in operations
        if operation and operation.get("op") in _OPERATIONS and _is_shared(operation)
    ]


_SHARED: Final = "/shared"
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_COUNTS: Final = (
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "reasoningTokens",
    "cachedInputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "totalCostUsd",
)


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_shared(operation: dict[str, Any]) -> bool:
    paths = [text_at(operation, name) for name in ("path", "from")]
    return bool(paths[0]) and all(
        path == _SHARED or path.startswith(f"{_SHARED}/") for path in paths if path
    )


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of note. `id_name` is the id of the thing that a lasting one is about."""

    name: str
    id_name: str | None = None


_BY_FAMILY: Final[dict[str, Note]] = {
    "agent": Note(name="agent", id_name="agentId"),
    "artifact": Note(name="artifact", id_name="artifactId"),
    "benchmark": Note(name="benchmark", id_name="evidenceId"),
    "channel": Note(name="channel", id_name="channelId"),
    "command": Note(name="command"),
    "context": Note(name="context"),
    "cost": Note(name="cost"),
    "evidence": Note(name="evidence", id_name="evidenceId"),
    "handoff": Note(name="handoff", id_name="handoffId"),
    "history": Note(name="context"),
    "hook": Note(name="hook"),
    "job": Note(name="job", id_name="jobId"),
    "limit": Note(name="limit"),
    "output": Note(name="diagnostic"),
    "patch": Note(name="patch"),
    "permission": Note(name="permission"),
    "plan": Note(name="plan", id_name="partId"),
    "policy": Note(name="permission"),
    "process": Note(name="process"),
    "queue": Note(name="queue"),
    "quota": Note(name="limit"),
    "rate_limit": Note(name="limit"),
    "review": Note(name="review", id_name="reviewId"),
    "routing": Note(name="routing"),
    "sandbox": Note(name="permission"),
    "subagent": Note(name="subagent-news"),
    "task": Note(name="task", id_name="taskId"),
    "team": Note(name="team"),
    "test": Note(name="test"),
    "worker": Note(name="worker", id_name="workerId"),
}
_BY_CLASS: Final[dict[str, Note]] = {
    "action.updated": Note(name="action-news"),
    "file.changed": Note(name="artifact", id_name="artifactId"),
    "file.read": Note(name="file"),
    "runtime.error": Note(name="diagnostic"),
    "runtime.warning": Note(name="diagnostic"),
    "tool.catalog.resolved": Note(name="context"),
}
_IDS: Final = (
    ("subagentId", "subagent_id"),
    ("taskId", "task_id"),
    ("toolCallId", "tool_call_id"),
    ("artifactId", "artifact_id"),
    ("evidenceId", "evidence_id"),
    ("handoffId", "handoff_id"),
    ("actionId", "action_id"),
    ("attemptId", "attempt_id"),
    ("reviewId", "review_id"),
    ("agentId", "agent_id"),
    ("workerId", "worker_id"),
    ("channelId", "channel_id"),
    ("jobId", "job_id"),
    ("jobItemId", "job_item_id"),
    ("processId", "process_id"),
)
_REFS: Final = (
    ("refIds", "ref_ids"),
    ("artifactRefs", "artifact_refs"),
    ("evidenceRefs", "evidence_refs"),
)


ACTION_NEWS: Final = _BY_CLASS["action.updated"]
ARTIFACT: Final = _BY_FAMILY["artifact"]
SUBAGENT_NEWS: Final = _BY_FAMILY["subagent"]


def artifact_notes(fact: Fact) -> list[Fact]:
    """A fact for each artifact that the fact of a call names."""
    artifact_id = id_of(fact, "artifactId")
    artifact_ids = dict.fromkeys(fact.artifact_refs if artifact_id is None else (artifact_id,))
    return [
        msgspec.structs.replace(
            fact,
            event_class="artifact.changed",
            artifact_id=each,
            artifact_refs=(),
            ref_ids=(),
            payload={},
        )
        for each in artifact_ids
        if each
    ]


def note_of(event_class: str) -> Note | None:
    """The note that facts of a class are."""
    return _BY_CLASS.get(event_class) or _BY_FAMILY.get(event_class.partition(".")[0])


def thing_of(fact: Fact, note: Note) -> str | None:
    """The id of what a lasting note is about; a passing one, or one without an id, has none."""
    return id_of(fact, note.id_name) if note.id_name else None


def content_of(fact: Fact) -> dict[str, object]:
    """What a note says: the class and the payload, with the ids of what it is about."""
    ids = {name: value for name, field in _IDS if (value := getattr(fact, field)) is not None}
    refs = {name: list(value) for name, field in _REFS if (value := getattr(fact, field))}
    return {**fact.payload, **ids, **refs, "class": fact.event_class}


class ProtocolWriter(Protocol):
    """One client's stream. `speaker` is a subagent, or None for the agent that answers."""

    def begin_turn(self, fact: Fact, turn_id: str, prompt: str | None, *, is_aside: bool) -> None:
        """A turn begins, or something beside turns; nothing else is told before."""
        ...

    def complete_turn(self, fact: Fact | None, usage: dict[str, Any]) -> None:
        """The turn is over; without a fact, what stood beside turns is."""
        ...

    def fail_turn(
        self, fact: Fact | None, category: str, message: str, usage: dict[str, Any]
    ) -> None:
        """The turn has failed, or was cut off."""
        ...

    def cancel_turn(self, fact: Fact, reason: str | None, usage: dict[str, Any]) -> None:
        """The turn was stopped."""
        ...

    def pause_turn(self) -> None:
        """The stream ends while somebody is asked."""
        ...

    def start_model_request(self, fact: Fact) -> None:
        """A model is asked."""
        ...

    def set_step(self, fact: Fact, name: str | None) -> None:
        """What follows belongs to this step, or to none."""
        ...

    def write_text(self, fact: Fact, text: StreamedText, delta: str) -> None:
        """The next piece of a text."""
        ...

    def end_text(self, fact: Fact, text: StreamedText) -> None:
        """A text is whole."""
        ...

    def names_of(self, message_id: str) -> list[str]:
        """What the texts of a message were called on the wire."""
        ...

    def retract_texts(self, fact: Fact, names: list[str]) -> None:
        """Texts are taken back."""
        ...

    def write_thought(self, fact: Fact, thought_id: str, summary: str | None) -> None:
        """A model reasons; `summary` is what it gives to be read."""
        ...

    def end_thought(self, fact: Fact, thought_id: str) -> None:
        """It has reasoned."""
        ...

    def start_call(self, fact: Fact, call: OpenCall) -> None:
        """A tool is called."""
        ...

    def write_args_piece(self, fact: Fact, call: OpenCall, delta: str) -> None:
        """The next piece of its arguments."""
        ...

    def write_args(self, fact: Fact, call: OpenCall) -> None:
        """Its arguments are `call.args`, for the first time or other than before."""
        ...

    def write_progress(self, fact: Fact, call: OpenCall) -> None:
        """How it gets on."""
        ...

    def finish_call(self, fact: Fact, call: OpenCall, output: Any) -> None:
        """It has given a result."""
        ...

    def fail_call(self, fact: Fact, call: OpenCall, category: str, message: str) -> None:
        """It has failed."""
        ...

    def open_action(self, fact: Fact, action: UnansweredAction, call: OpenCall | None) -> None:
        """A person is asked; `call` is the call that it is about."""
        ...

    def close_action(self, fact: Fact, action: UnansweredAction, answer: ActionAnswer) -> None:
        """The question is closed."""
        ...

    def start_subagent(self, fact: Fact, subagent_id: str) -> None:
        """Another agent begins to work."""
        ...

    def end_subagent(self, fact: Fact, subagent_id: str) -> None:
        """It is done, one way or the other."""
        ...

    def write_state(self, fact: Fact) -> None:
        """The application's own state has changed."""
        ...

    def write_note(self, fact: Fact, note: Note) -> None:
        """Anything else that a client can show."""
        ...
