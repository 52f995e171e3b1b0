"""What is said on the control channel: one JSON object to a line, each way once; with its
limits and its errors. Pure.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

import msgspec

from factwire.facts.resources import DecisionCard, GrantedRule, StandingRule
from factwire.runtime.limits import RULE_SECONDS

LINE_BYTES: Final = 64 * 1024
"""Bytes of a request; a reason is a sentence, not a file."""

ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Bytes of an answer: a card shows a whole change of files."""

READ_SECONDS: Final = 5.0
"""How long a client may take to say what it wants."""

WORK_SECONDS: Final = 60.0
"""How long a request may take; cancelling waits for an agent that is asked to stop."""

CLIENT_SECONDS: Final = WORK_SECONDS + READ_SECONDS
"""How long a client waits for its answer."""

CONNECTIONS: Final = 32
"""Clients at the same time; there is one person behind all of them."""

REASON_CHARACTERS: Final = 4_000
"""Characters of a reason that goes into the journal with a decision."""

PROMPT_CHARACTERS: Final = 60
"""Characters of a prompt in a list of what waits; the journal has the whole of it."""

SOCKET_PATH_BYTES: Final = 100
"""Bytes of a socket's path that every system takes; Linux takes 107, others less."""


class ControlError(Exception):
    """The root; `code` never changes, the words may."""

    code = "control_error"


class ControlUnavailable(ControlError):
    code = "control_unavailable"


class NobodyRunning(ControlError):
    code = "nobody_running"


class NoAnswer(ControlError):
    code = "no_answer"


_Message = TypeVar("_Message")

RefusalCode = Literal[
    "malformed",
    "too_large",
    "too_slow",
    "too_many",
    "not_allowed",
    "unknown_action",
    "action_already_decided",
    "action_expired",
    "action_changed",
    "action_not_shown",
    "unknown_turn",
    "turn_ended",
    "turn_not_active",
    "steer_unsupported",
    "steer_too_long",
    "queue_full",
    "thread_elsewhere",
    "no_standing_rule",
    "unknown_standing_rule",
    "runtime_closing",
    "failed",
]

REFUSALS: Final[dict[RefusalCode, str]] = {
    "malformed": "the request is not a single-line JSON object of a known form",
    "too_large": "the request is too long",
    "too_slow": "the request, or what it asks for, took too long",
    "too_many": "too many clients are connected",
    "not_allowed": "the client belongs to another user",
    "unknown_action": "no action has this id",
    "action_already_decided": "the action was already decided differently",
    "action_expired": "the action has expired",
    "action_changed": "the request changed since it was shown",
    "action_not_shown": "the exact text of the request is gone, so it can only be denied",
    "unknown_turn": "no turn or thread has this id",
    "turn_ended": "the turn has ended, or the thread has no running turn",
    "turn_not_active": "the turn to steer is not running",
    "steer_unsupported": "the agent of the turn cannot be steered",
    "steer_too_long": "the message is too long to steer with",
    "queue_full": "too many turns or steers are queued",
    "thread_elsewhere": "another runtime owns the thread",
    "no_standing_rule": "no exact rule can allow this permanently",
    "unknown_standing_rule": "no rule with this id holds: it was revoked or has expired",
    "runtime_closing": "the runtime is shutting down",
    "failed": "the runtime could not do it",
}
"""Code of a refusal → what it means."""


class DecideRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="decide",
):
    """Answer an open action that asks for exactly what has this `args_hash`. `always` makes a yes
    hold for its pattern from now on, or for `expires_in` seconds.
    """

    action_id: str
    decision: Literal["approve", "deny"]
    args_hash: str
    reason: str | None = None
    always: Literal["thread", "workspace"] | None = None
    expires_in: Annotated[float, msgspec.Meta(gt=0, le=RULE_SECONDS)] | None = None


class CardRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="card",
):
    """Ask for exactly what an action is about, and for the rule that `always` would grant."""

    action_id: str
    with_rule: bool = False


class CancelRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="cancel",
):
    """Stop a turn; `target` is its id, or that of the thread it runs on. `take_over` closes one
    that another runtime claims.
    """

    target: str
    reason: str | None = None
    take_over: bool = False


class SteerRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="steer",
):
    """Say something to the turn that runs on a thread; with `queue`, as a turn of its own where
    that cannot be. `queued_turn_id` says what a queued turn was to be asked, instead of a text.
    """

    thread_id: str
    text: str = ""
    steer_id: str | None = None
    queued_turn_id: str | None = None
    queue: bool = False


class QueueRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="queue",
):
    """Ask what waits on a thread, after letting a turn go first, taking one out, or going on after
    a stop with the turns that are held: all of them, or `release` alone.
    """

    thread_id: str
    promote: str | None = None
    remove: str | None = None
    release: str | None = None
    release_all: bool = False


class RulesRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="rules",
):
    """Ask which standing rules hold, after revoking the one with this id."""

    revoke: str | None = None


class StatusRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="status",
):
    """Ask what runs."""


ControlRequest = (
    DecideRequest
    | CardRequest
    | CancelRequest
    | SteerRequest
    | QueueRequest
    | RulesRequest
    | StatusRequest
)


class DecideReply(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="decided"
):
    """The decision that holds; the same one given twice is no news. `later` says what it waits for
    where it has no effect yet, here and in what follows.
    """

    action_id: str
    thread_id: str
    decision: str
    decided_by: str | None = None
    later: str | msgspec.UnsetType = msgspec.UNSET


class CardReply(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="card"
):
    """What a person decides about, and the rule where it was asked for."""

    card: DecisionCard
    rule: StandingRule | None = None


class CancelReply(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="canceled"
):
    turn_id: str
    thread_id: str
    later: str | msgspec.UnsetType = msgspec.UNSET


class SteerReply(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="steered"
):
    """What became of a steer: pending, delivered, or a turn that was started or is queued."""

    steer_id: str
    thread_id: str
    turn_id: str
    status: str
    later: str | msgspec.UnsetType = msgspec.UNSET


class WaitingTurn(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A turn that waits; `not_before` is when one that is tried again starts."""

    turn_id: str
    prompt: str
    agent_id: str | None = None
    status: str | None = None
    not_before: str | None = None


class QueueReply(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="queued"
):
    """What waits on a thread, in order."""

    thread_id: str
    turns: tuple[WaitingTurn, ...]


class RulesReply(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="rules"
):
    """The standing rules that hold, newest first."""

    rules: tuple[GrantedRule, ...]


class ThreadStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thread that a runtime works on: the turn that runs, and what waits for a person."""

    thread_id: str
    turn_id: str | None
    open_actions: tuple[str, ...]


class StatusReply(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="running"
):
    pid: int
    threads: tuple[ThreadStatus, ...]


class ControlRefusal(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="refused"
):
    code: RefusalCode
    message: str


ControlReply = (
    DecideReply
    | CardReply
    | CancelReply
    | SteerReply
    | QueueReply
    | RulesReply
    | StatusReply
    | ControlRefusal
)

_requests: Final = msgspec.json.Decoder(ControlRequest)
_answers: Final = msgspec.json.Decoder(ControlReply)


class Malformed(ValueError):
    """A line that is no request, or no answer."""


def encode(message: ControlRequest | ControlReply) -> bytes:
    """One line."""
    return msgspec.json.encode(message) + b"\n"


def decode_request(line: bytes) -> ControlRequest:
    """The request on a line; raises `Malformed`."""
    request = _decode(_requests, line, LINE_BYTES)
    reason = getattr(request, "reason", None)
    if reason is not None and len(reason) > REASON_CHARACTERS:
        raise Malformed(f"expected a reason of at most {REASON_CHARACTERS} characters, got more")
    return request


def decode_answer(line: bytes) -> ControlReply:
    """The answer on a line; raises `Malformed`."""
    return _decode(_answers, line, ANSWER_BYTES)


def build_refusal(code: RefusalCode, message: str | None = None) -> ControlRefusal:
    return ControlRefusal(code=code, message=message or REFUSALS[code])


def _decode(decoder: msgspec.json.Decoder[_Message], line: bytes, limit: int) -> _Message:
    if len(line) > limit:
        raise Malformed(f"expected at most {limit} bytes, got more")
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(str(error)) from error


class Controls(Protocol):
    """A refusal is a reply, with a code of `REFUSALS`. Raised is only what kept everybody from
    replying: a `ControlError`, or the error of the way there.
    """

    async def decide(self, request: DecideRequest) -> DecideReply | ControlRefusal: ...

    async def card(self, request: CardRequest) -> CardReply | ControlRefusal: ...

    async def cancel(self, request: CancelRequest) -> CancelReply | ControlRefusal: ...

    async def steer(self, request: SteerRequest) -> SteerReply | ControlRefusal: ...

    async def queue(self, request: QueueRequest) -> QueueReply | ControlRefusal: ...

    async def rules(self, request: RulesRequest) -> RulesReply | ControlRefusal: ...

    async def status(self) -> tuple[StatusReply, ...]:
        """What each runtime does now; empty where none says so."""
        ...


async def answer_request(controls: Controls, request: ControlRequest) -> ControlReply:
    """Send a request to the method that it is for."""
    return await _METHODS[type(request)](controls, request)


async def _answer_status(controls: Controls, request: StatusRequest) -> ControlReply:
    del request
    replies = await controls.status()
    return replies[0] if replies else build_refusal("malformed")


_METHODS: Final[dict[type[ControlRequest], Callable[[Controls, Any], Awaitable[ControlReply]]]] = {
    DecideRequest: lambda controls, request: controls.decide(request),
    CardRequest: lambda controls, request: controls.card(request),
    CancelRequest: lambda controls, request: controls.cancel(request),
    SteerRequest: lambda controls, request: controls.steer(request),
    QueueRequest: lambda controls, request: controls.queue(request),
    RulesRequest: lambda controls, request: controls.rules(request),
    StatusRequest: _answer_status,
}
