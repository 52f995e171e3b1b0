"""Frames between an Edge and its Hub, as both read them.

The table of all frames is the Hub's; here is what an Edge sends and takes. Names on this wire are
snake_case, but for what was spelled otherwise before there was a Hub.
"""

from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from factwire.facts.resources import TaskChanges

Unset = msgspec.UnsetType
UNSET: Final = msgspec.UNSET


class FramePayload(msgspec.Struct, frozen=True, kw_only=True, tag_field=None):
    """What the payload of a frame is; members that are unset do not travel."""


REPLACED_CODE: Final = 4409
"""The close code of a socket whose device has opened a newer one."""


class DeviceKicked(FramePayload, frozen=True, kw_only=True):
    """A socket was `replaced` by a newer one of the same device, which stays as it is. For any
    other reason, whoever is told has this device no longer.
    """

    device_id: str
    reason: str


class EdgeHeartbeat(FramePayload, frozen=True, kw_only=True):
    """An Edge is well: its version, the agents that it offers, and the tasks it is working on."""

    edge_id: str
    device_id: str
    version: str
    agents: list[str]
    tasks: list[str] = []


class DispatchWorktree(FramePayload, frozen=True, kw_only=True):
    """The work is to be done in a git worktree of its own, where its folder is in a repository.
    With `edge_run_id`, it goes on in that of an earlier run, if that is still there.
    """

    edge_run_id: str | Unset = UNSET


class AgentDispatch(FramePayload, frozen=True, kw_only=True):
    """Work for exactly one device. The same `delivery_id` is the same work, however often it
    comes.
    """

    task_id: str
    delivery_id: str
    agent_instance_id: str
    agent_type: str
    session_id: str
    prompt: str
    trigger_message_id: str
    trigger_user_id: str
    display_name: str
    edge_device_id: str
    person: dict[str, Any]
    model_params: dict[str, Any] | Unset = UNSET
    target_id: str | Unset = UNSET
    thread_id: str | Unset = UNSET
    project_id: str | Unset = UNSET
    work_dir: str | Unset = UNSET
    team_id: str | Unset = UNSET
    team_run_id: str | Unset = UNSET
    team_member_id: str | Unset = UNSET
    team_member_role: str | Unset = UNSET
    worktree: DispatchWorktree | Unset = UNSET


class AgentDone(FramePayload, frozen=True, kw_only=True):
    """A task is done. `route_decision` is a `CoordinatorRouteDecision`, where the structured output
    of the run was one. One with a worktree has `changes`, and the beginning of their `diff`, of
    which clients are not told: for them it is behind a ref.
    """

    task_id: str
    result_summary: str
    usage: dict[str, Any]
    edge_run_id: str | Unset = UNSET
    thread_id: str | Unset = UNSET
    route_decision: dict[str, Any] | Unset = UNSET
    changes: TaskChanges | Unset = UNSET
    diff: str | Unset = UNSET


class AgentFailed(FramePayload, frozen=True, kw_only=True):
    """A task failed or was stopped; `changes` and `diff` as of one that is done."""

    task_id: str
    error: dict[str, Any]
    edge_run_id: str | Unset = UNSET
    thread_id: str | Unset = UNSET
    usage: dict[str, Any] | Unset = UNSET
    changes: TaskChanges | Unset = UNSET
    diff: str | Unset = UNSET


class AgentCancel(FramePayload, frozen=True, kw_only=True):
    """Stop a task, or never begin it. Without a person, the Hub gave up on it by itself."""

    task_id: str
    delivery_id: str
    person: dict[str, Any] | Unset = UNSET


class AgentTimeout(FramePayload, frozen=True, kw_only=True):
    task_id: str
    delivery_id: str


class EdgeControl(FramePayload, frozen=True, kw_only=True, rename="camel"):
    """A decision in the words of `POST /v1/permissions/decide` of an Edge."""

    run_id: str
    request_id: str
    decision: Literal["allow", "deny"]
    reason: str | None = None
    args_hash: str | Unset = UNSET
    decided_by: dict[str, Any] | Unset = UNSET


class AgentControl(FramePayload, frozen=True, kw_only=True):
    """A decision for exactly the device whose agent asked."""

    kind: Literal["permission.decide"]
    delivery_id: str
    edge_device_id: str
    edge_control: EdgeControl
    agent_task_id: str | Unset = UNSET
    target_id: str | Unset = UNSET
    team_id: str | Unset = UNSET
    team_run_id: str | Unset = UNSET
    team_task_id: str | Unset = UNSET
    assignment_id: str | Unset = UNSET
    member_id: str | Unset = UNSET
    approval_id: str | Unset = UNSET


class SyncUploaded(FramePayload, frozen=True, kw_only=True, rename="camel"):
    """Facts of an Edge are on their way: an upload of `producer`, which is the Edge's id."""

    producer: str
    epoch: str
    from_seq: int
    to_seq: int


class SyncAck(FramePayload, frozen=True, kw_only=True, rename="camel"):
    acked_seq: int


class RelayCommandCreated(FramePayload, frozen=True, kw_only=True, rename="camel"):
    """A request for the Edge's own REST interface, in the name of a person; `scopes` are what the
    Hub allows it, of those that a token of the Edge can have.
    """

    command_id: str
    delivery_id: str
    method: str
    path: str
    person: dict[str, Any]
    scopes: list[Literal["read", "decide", "run"]]
    query: str = ""
    body: Any = None
    idempotency_key: str | Unset = UNSET

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing, and may be answered anew each time that it comes."""
        return self.method in ("GET", "HEAD")

    def digest(self) -> bytes:
        """What tells whether a request under a known key is the same one."""
        what = (self.method, self.path, self.query, self.body)
        return sha256(msgspec.json.encode(what, order="deterministic")).digest()


class RelayCommandAcknowledged(FramePayload, frozen=True, kw_only=True, rename="camel"):
    """The Edge's answer to a relayed request. One that is no JSON, or too large for a frame, was
    uploaded before this, and `uploaded` says so. With `expired`, the Edge has answered before, with
    this status, and no longer keeps the answer.
    """

    command_id: str
    status: int
    headers: dict[str, str] = {}
    body: Any = None
    uploaded: bool = False
    expired: bool = False


class RelayAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An answer to a relayed request as it is uploaded; `content` is in base64."""

    status: int
    headers: dict[str, str]
    content: bytes


class DeliveryAck(FramePayload, frozen=True, kw_only=True):
    """An Edge has done a delivery, and has that on disk. `refused` is the code for why it will not
    do it. With `later`, it has no room for it now, and is to be sent it again.
    """

    delivery_id: str
    later: bool | Unset = UNSET
    refused: str | Unset = UNSET
    message: str | Unset = UNSET
    edge_run_id: str | Unset = UNSET
    thread_id: str | Unset = UNSET


class EndAck(FramePayload, frozen=True, kw_only=True):
    """The Hub has the end of a task on disk."""

    task_id: str


NOT_RELAYED: Final = frozenset(
    {
        "GET /v1/metrics",
        "GET /asyncapi.json",
        "GET /openapi.json",
        "POST /v1/tickets",
        "POST /v1/facts",
        "POST /v1/permissions/decide",
    }
)
"""Routes of an Edge that a token may use and a Hub may not: tickets would open a door of the Edge
beside the Hub, facts of other runtimes are sent to the Edge itself, a decision goes by the Hub's
approvals, which may ask for several people, and the rest is about the server. Whatever needs the
scope `admin`, and every stream, is not relayed either.
"""

MIRRORED_ROUTES: Final = frozenset(
    f"/v1/{path.strip()}"
    for path in """
        projects
        projects/{project_id}
        conversations
        conversations/{conversation_id}
        threads
        threads/{thread_id}
        threads/{thread_id}/items
        threads/{thread_id}/items/{item_id}
        threads/{thread_id}/projection
        threads/{thread_id}/read-model
        threads/{thread_id}/queue
        runs
        runs/{run_id}
        runs/{run_id}/events
        runs/{run_id}/processes
        approvals
        approvals/{approval_id}
        events
        facts
        artifacts
        artifacts/{artifact_id}
        artifacts/{artifact_id}/content
        blobs/{ref}
        tasks
        tasks/{task_id}
        evidence
        evidence/{evidence_id}
        evidence/{evidence_id}/content
        previews
        previews/{preview_id}
    """.strip().splitlines()
)
"""What is read from the journal and the blobs alone, so that a mirror answers it and an Edge need
not: a Hub reads there what it was given, and nothing of private threads.
"""
