"""What is said on the control channel: one JSON object to a line, each way once. Pure.

A request that is not exactly one of these is refused; nothing in it is guessed. A refusal has a
code that never changes.
"""

from typing import Final, Literal, TypeVar

import msgspec

from factwire.runtime.control.limits import LINE_BYTES, REASON_CHARACTERS

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
    "unknown_turn",
    "turn_ended",
    "turn_not_active",
    "steer_unsupported",
    "steer_too_long",
    "queue_full",
    "thread_elsewhere",
    "no_standing_rule",
    "runtime_closing",
    "failed",
]

REFUSALS: Final[dict[RefusalCode, str]] = {
    "malformed": "the request is not one JSON object of a known form on one line",
    "too_large": "the request is longer than a line may be",
    "too_slow": "the request, or what it asks for, took too long",
    "too_many": "too many clients are connected",
    "not_allowed": "the client belongs to another user",
    "unknown_action": "no action of this id is known here",
    "action_already_decided": "the action was decided, and the other way",
    "action_expired": "the time to answer has run out",
    "action_changed": "what was decided on is not what is asked for",
    "unknown_turn": "no turn or thread of this id is known here",
    "turn_ended": "the turn has ended, or the thread has none that runs",
    "turn_not_active": "the turn that was to be steered does not run",
    "steer_unsupported": "the agent of the turn cannot be steered",
    "steer_too_long": "what was said is longer than a steer may be",
    "queue_full": "as many turns or steers wait as may",
    "thread_elsewhere": "another runtime works on the thread",
    "no_standing_rule": "no exact rule can allow this for later",
    "runtime_closing": "the runtime is being closed",
    "failed": "the runtime could not do it",
}
"""Code of a refusal → what it means."""


class Decide(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="decide",
):
    """Answer an open action; with `args_hash`, only if it asks for exactly that. `always` makes a
    yes hold for its pattern from now on.
    """

    action_id: str
    decision: Literal["approve", "deny"]
    reason: str | None = None
    args_hash: str | None = None
    always: Literal["thread", "workspace"] | None = None


class Cancel(
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


class Steer(
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


class Queue(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="queue",
):
    """Ask what waits on a thread, after letting a turn go first or taking one out."""

    thread_id: str
    promote: str | None = None
    remove: str | None = None


class Status(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="request",
    tag="status",
):
    """Ask what runs."""


Request = Decide | Cancel | Steer | Queue | Status


class Decided(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="decided"
):
    """The decision that holds; the same one given twice is no news."""

    action_id: str
    thread_id: str
    decision: str
    decided_by: str | None = None


class Canceled(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="canceled"
):
    turn_id: str
    thread_id: str


class SteerSaid(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="steered"
):
    """What became of a steer: pending, delivered, or a turn that was started or is queued."""

    steer_id: str
    thread_id: str
    turn_id: str
    status: str


class Waiting(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A turn that waits; `not_before` is when one that is tried again starts."""

    turn_id: str
    prompt: str
    agent_id: str | None = None
    status: str | None = None
    not_before: str | None = None


class Queued(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="queued"
):
    """What waits on a thread, in order."""

    thread_id: str
    turns: tuple[Waiting, ...]


class ThreadNow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thread that a runtime works on: the turn that runs, and what waits for a person."""

    thread_id: str
    turn_id: str | None
    open_actions: tuple[str, ...]


class Running(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="running"
):
    pid: int
    threads: tuple[ThreadNow, ...]


class Refused(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="answer", tag="refused"
):
    code: RefusalCode
    message: str


Answer = Decided | Canceled | SteerSaid | Queued | Running | Refused

_requests: Final = msgspec.json.Decoder(Request)
_answers: Final = msgspec.json.Decoder(Answer)


class Malformed(ValueError):
    """A line that is no request, or no answer."""


def encode(message: Request | Answer) -> bytes:
    """One line."""
    return msgspec.json.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """The request on a line; raises `Malformed`."""
    request = _decoded(_requests, line)
    reason = getattr(request, "reason", None)
    if reason is not None and len(reason) > REASON_CHARACTERS:
        raise Malformed(f"expected a reason of at most {REASON_CHARACTERS} characters, got more")
    return request


def decode_answer(line: bytes) -> Answer:
    """The answer on a line; raises `Malformed`."""
    return _decoded(_answers, line)


def refusal(code: RefusalCode, message: str | None = None) -> Refused:
    return Refused(code=code, message=message or REFUSALS[code])


def _decoded(decoder: msgspec.json.Decoder[_Message], line: bytes) -> _Message:
    if len(line) > LINE_BYTES:
        raise Malformed(f"expected at most {LINE_BYTES} bytes, got more")
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(str(error)) from error
