"""What clients may send and what they get beyond single rows, typed, so that the interface is
described exactly.

Anything else that is sent is refused by name. Answers whose bytes exist already are here as well:
a handler names them in `opt` under `ANSWERS`.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from factwire.edge.limits import NAME_CHARACTERS, PROMPT_CHARACTERS
from factwire.facts.resources import Run, SteerAnswer, TokenScope
from factwire.facts.secret_shapes import find_secrets
from factwire.runtime.limits import RULE_SECONDS

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARACTERS)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARACTERS)]
Prompt = Annotated[str, msgspec.Meta(max_length=PROMPT_CHARACTERS)]
Reason = Annotated[str, msgspec.Meta(max_length=10_000)]


class RequestBody(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """The base of every request body. Names are redacted where they are written; an id would be
    another one then, so one with a secret in it is refused.
    """

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name) if name.endswith("_id") else None
            if isinstance(value, str) and find_secrets(value):
                raise ValueError(f"{name} must be an id without a secret in it")


class ProjectBody(RequestBody, frozen=True):
    name: Name
    work_dir: str | None = None


class ProjectChange(RequestBody, frozen=True):
    name: Name | msgspec.UnsetType = msgspec.UNSET
    work_dir: str | msgspec.UnsetType = msgspec.UNSET


class RetentionBody(RequestBody, frozen=True):
    """What to remove now; with no rule at all, what the settings say."""

    keep_days: Annotated[float, msgspec.Meta(gt=0, le=36_500)] | None = None
    keep_facts: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    compact: bool = False
    dry_run: bool = False


class ConversationBody(RequestBody, frozen=True):
    title: Name | None = None
    project_id: Id | None = None


class MemberBody(RequestBody, frozen=True):
    member_id: Id
    member_type: Name


class ThreadBody(RequestBody, frozen=True):
    title: Name | None = None
    project_id: Id | None = None
    conversation_id: Id | None = None
    agent_id: Id | None = None
    private: bool = False


class ThreadChange(RequestBody, frozen=True):
    """A thread can become private, and stays so."""

    title: Name | msgspec.UnsetType = msgspec.UNSET
    status: Literal["active", "archived"] | msgspec.UnsetType = msgspec.UNSET
    private: Literal[True] | msgspec.UnsetType = msgspec.UNSET


class ForkBody(RequestBody, frozen=True):
    """Where to fork: after an item, or at a cursor; with neither, now."""

    from_item_id: str | None = None
    at: str | None = None
    title: Name | None = None


class MessageBody(RequestBody, frozen=True):
    """`mode` decides what happens while a run is active: queue, steer or refuse the message."""

    text: Prompt = ""
    input: list[dict[str, Any]] | None = None
    agent_id: Id | None = None
    options: dict[str, Any] | None = None
    mode: Literal["queue", "steer", "refuse"] = "queue"


class RunBody(RequestBody, frozen=True):
    """A run on a thread, or without `threadId` on a fresh one. With `worktree` it works in a fresh
    git worktree of its folder's repository; where it is absent, the configuration decides.
    """

    agent_id: Id
    prompt: Prompt = ""
    input: list[dict[str, Any]] | None = None
    thread_id: Id | None = None
    project_id: Id | None = None
    title: Name | None = None
    work_dir: str | None = None
    worktree: bool | None = None
    options: dict[str, Any] | None = None
    when_busy: Literal["queue", "refuse"] = "queue"


class CancelBody(RequestBody, frozen=True):
    reason: Reason | None = None


class MergeBody(RequestBody, frozen=True):
    """A branch to merge into, else the one that is checked out; the subject of the commit; and the
    `tree` of the diff that was looked at, if nothing else is to be merged.
    """

    into: Annotated[str, msgspec.Meta(min_length=1, max_length=250)] | None = None
    message: Reason | None = None
    tree: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40,64}$")] | None = None


class DecisionBody(RequestBody, frozen=True):
    """`argsHash` is the hash on the card that was shown; `always` makes an approval
    permanent, or lets it hold for `expiresIn` seconds.
    """

    run_id: Id
    request_id: Id
    decision: Literal["allow", "deny"]
    args_hash: str
    reason: Reason | None = None
    always: Literal["thread", "workspace"] | None = None
    expires_in: Annotated[float, msgspec.Meta(gt=0, le=RULE_SECONDS)] | None = None
    response: Any = None

    def __post_init__(self) -> None:
        if self.expires_in is not None and self.always is None:
            raise ValueError("expiresIn needs always: a decision for once does not last")


class PreviewBody(RequestBody, frozen=True):
    run_id: Id
    path: str = "."


class BlobBody(RequestBody, frozen=True):
    """An attachment, in base64, because an Edge accepts only JSON."""

    content: bytes


class EvidenceBody(RequestBody, frozen=True):
    thread_id: Id
    with_blobs: bool = False


RawFact = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]


class TicketBody(RequestBody, frozen=True):
    """`renewable` asks for a ticket that opens streams again and again; `renew` names one that is
    to last anew.
    """

    renewable: bool = False
    renew: str | None = None


class TokenBody(RequestBody, frozen=True):
    """A token for somebody or something, and what it may do."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f]+$")]
    scopes: Annotated[list[TokenScope], msgspec.Meta(min_length=1, max_length=4)]


class FactsBody(RequestBody, frozen=True):
    """A batch of facts, unparsed: each is decoded once, by the rules of its class."""

    facts: list[RawFact]


FactList = FactsBody | list[RawFact]
"""A batch of facts as JSON: an object with the list, or the list alone."""

_EXAMPLE_ROWS: Final[list[tuple[str, dict[str, str], dict[str, Any]]]] = [
    ("turn.started", {}, {}),
    ("model.delta", {"messageId": "my-message"}, {"delta": "Hello"}),
    ("model.completed", {"messageId": "my-message"}, {"text": "Hello."}),
    ("turn.completed", {}, {}),
]
_EXAMPLE_FACTS: Final[list[dict[str, Any]]] = [
    {
        "type": name,
        "id": f"my-agent-{number}",
        "runtimeId": "my-agent",
        "sessionId": "my-session",
        "threadId": "my-thread",
        "turnId": "my-turn",
        "createdAt": f"2026-01-01T00:00:0{number}Z",
        **ids,
        "payload": payload,
    }
    for number, (name, ids, payload) in enumerate(_EXAMPLE_ROWS, 1)
]
FACT_EXAMPLES: Final = {
    "object": {"summary": "An object", "value": {"facts": _EXAMPLE_FACTS}},
    "list": {"summary": "A list", "value": _EXAMPLE_FACTS},
}
FACT_LINE_EXAMPLES: Final = {
    "lines": {
        "summary": "One fact in each line",
        "value": "".join(f"{msgspec.json.encode(fact).decode()}\n" for fact in _EXAMPLE_FACTS),
    }
}


class ApiAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The base of these responses."""


class MessageAnswer(ApiAnswer, frozen=True):
    """The run that a message started, or the result of steering with it."""

    run: Run | None = None
    steered: SteerAnswer | None = None
