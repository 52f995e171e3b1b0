"""Bodies: what a client may send, typed; anything else is refused by name."""

from typing import Annotated, Any, Literal

import msgspec

from factwire.edge.limits import NAME_CHARACTERS, PROMPT_CHARACTERS

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARACTERS)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARACTERS)]
Prompt = Annotated[str, msgspec.Meta(max_length=PROMPT_CHARACTERS)]
Reason = Annotated[str, msgspec.Meta(max_length=10_000)]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The root of every body."""


class ProjectBody(Body, frozen=True):
    name: Name
    work_dir: str | None = None


class ProjectChange(Body, frozen=True):
    name: Name | msgspec.UnsetType = msgspec.UNSET
    work_dir: str | msgspec.UnsetType = msgspec.UNSET


class ConversationBody(Body, frozen=True):
    title: Name | None = None
    project_id: Id | None = None


class MemberBody(Body, frozen=True):
    member_id: Id
    member_type: Name


class ThreadBody(Body, frozen=True):
    title: Name | None = None
    project_id: Id | None = None
    conversation_id: Id | None = None
    agent_id: Id | None = None


class ThreadChange(Body, frozen=True):
    title: Name | msgspec.UnsetType = msgspec.UNSET
    status: Literal["active", "archived"] | msgspec.UnsetType = msgspec.UNSET


class ForkBody(Body, frozen=True):
    """Where to fork: after an item, or at a cursor; with neither, now."""

    from_item_id: str | None = None
    at: str | None = None
    title: Name | None = None


class MessageBody(Body, frozen=True):
    """`mode` says what happens while a run is active: wait, be told to it, or be refused."""

    text: Prompt = ""
    input: list[dict[str, Any]] | None = None
    agent_id: Id | None = None
    options: dict[str, Any] | None = None
    mode: Literal["queue", "steer", "refuse"] = "queue"


class RunBody(Body, frozen=True):
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


class CancelBody(Body, frozen=True):
    reason: Reason | None = None


class DecisionBody(Body, frozen=True):
    """`argsHash` binds the decision to what was shown; `always` makes a yes last."""

    run_id: Id
    request_id: Id
    decision: Literal["allow", "deny"]
    reason: Reason | None = None
    args_hash: str | None = None
    always: Literal["thread", "workspace"] | None = None
    response: Any = None


class PreviewBody(Body, frozen=True):
    run_id: Id
    path: str = "."


class BlobBody(Body, frozen=True):
    """An attachment; base64, since an Edge takes JSON alone."""

    content: bytes


class EvidenceBody(Body, frozen=True):
    thread_id: Id
    with_blobs: bool = False


RawFact = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]


class FactsBody(Body, frozen=True):
    """Facts are left as they came: each is read once, by its own rules."""

    facts: list[RawFact]
