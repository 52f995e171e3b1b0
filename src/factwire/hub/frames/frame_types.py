"""Every frame of `/client/ws`: its type, its payload, and who sends it to whom.

A frame is `{type, seq_id?, cursor?, payload}`: the Hub numbers what it sends on a connection, and
an event says from which cursor a reader that has it goes on. `FRAMES` is the one table: the socket
sends and takes nothing that is not in it, the AsyncAPI document is made from it, and a test holds
that each row is emitted.
Names on this wire are snake_case. An id of a person is `user_id` here.
"""

from typing import Any, Final, Literal

import msgspec

from factwire.edge.hub_frames import (
    UNSET,
    AgentCancel,
    AgentControl,
    AgentDispatch,
    AgentDone,
    AgentFailed,
    AgentTimeout,
    DeliveryAck,
    DeviceKicked,
    EdgeHeartbeat,
    EndAck,
    FramePayload,
    RelayCommandAcknowledged,
    RelayCommandCreated,
    SyncAck,
    SyncUploaded,
    Unset,
)

Direction = Literal["hub_to_client", "client_to_hub", "hub_to_edge", "edge_to_hub"]
SenderType = Literal["user", "agent", "system"]
MemberType = Literal["user", "agent"]
ChatType = Literal["private", "group", "thread"]
DeviceType = Literal["edge", "runner", "screen"]


class AuthOk(FramePayload, frozen=True, kw_only=True):
    """Who a socket belongs to. `cursor` is where its events begin."""

    user_id: str
    device_id: str
    cursor: str


class AuthFail(FramePayload, frozen=True, kw_only=True):
    reason: str


class FrameError(FramePayload, frozen=True, kw_only=True):
    """Why the Hub refuses a frame or ends a socket; `snapshotRequired` where reading has to begin
    again with a snapshot.
    """

    code: str
    message: str
    snapshotRequired: bool | Unset = UNSET  # noqa: N815 - as the streams of an Edge spell it


class TypingRequest(FramePayload, frozen=True, kw_only=True):
    session_id: str


class Typing(FramePayload, frozen=True, kw_only=True):
    session_id: str
    user_id: str


class MessageNew(FramePayload, frozen=True, kw_only=True):
    """A message of a chat as it was sent. `seq_id` counts the messages of its chat without gaps.
    Everything up to it counts as read by its sender. One that was recalled meanwhile has an empty
    `content`.
    """

    message_id: str
    session_id: str
    sender_id: str
    sender_type: SenderType
    content: dict[str, Any]
    content_type: str
    seq_id: int
    created_at: str
    client_msg_id: str
    reply_to_message_id: str | None = None


class MessageRecall(FramePayload, frozen=True, kw_only=True):
    """A message is gone, and with it its content, its edits, its pin and its reactions."""

    message_id: str
    session_id: str
    recalled_by: str
    recalled_at: str


class MessagePin(FramePayload, frozen=True, kw_only=True):
    message_id: str
    session_id: str
    pinned_by: str
    pinned_at: str


class MessageUnpin(FramePayload, frozen=True, kw_only=True):
    message_id: str
    session_id: str


class MessageRead(FramePayload, frozen=True, kw_only=True):
    message_id: str
    session_id: str
    read_by: str
    last_read_seq: int


class MessageEdited(FramePayload, frozen=True, kw_only=True):
    message_id: str
    session_id: str
    content: dict[str, Any]
    edited_at: str


class MessageReaction(FramePayload, frozen=True, kw_only=True):
    """Somebody reacted to a message, or took a reaction back."""

    message_id: str
    session_id: str
    user_id: str
    emoji: str
    removed: bool = False


class ChatMember(FramePayload, frozen=True, kw_only=True):
    member_id: str
    member_type: MemberType
    name: str
    joined_at: str
    last_read_seq: int
    device_id: str | Unset = UNSET
    agent_type: str | Unset = UNSET
    target_id: str | Unset = UNSET


class SessionCreated(FramePayload, frozen=True, kw_only=True):
    """A chat that is new to whoever is told. `members` has those who joined first, up to a bound;
    `member_count` is how many there are.
    """

    session_id: str
    type: ChatType
    name: str
    owner_id: str
    members: list[ChatMember]
    member_count: int
    description: str
    created_at: str
    last_seq: int
    edge_id: str | Unset = UNSET
    thread_id: str | Unset = UNSET


class SessionDissolved(FramePayload, frozen=True, kw_only=True):
    session_id: str


class SessionMemberJoined(ChatMember, frozen=True, kw_only=True):
    session_id: str


class SessionMemberLeft(FramePayload, frozen=True, kw_only=True):
    session_id: str
    member_id: str


class SessionInfoUpdated(FramePayload, frozen=True, kw_only=True):
    session_id: str
    changes: dict[str, Any]


class DevicePresence(FramePayload, frozen=True, kw_only=True):
    """A device of somebody came or went."""

    user_id: str
    device_id: str
    device_type: DeviceType


class DeviceRegistered(FramePayload, frozen=True, kw_only=True):
    """A device that is new to whoever is told, or has another name, version or agents now."""

    device_id: str
    user_id: str
    device_type: DeviceType
    name: str
    edge_id: str
    platform: str
    version: str
    agents: list[str]
    created_at: str
    online: bool


class EdgeRegistered(FramePayload, frozen=True, kw_only=True):
    """The Edge of a device, in the place of any that it had: that of a runner is known once it has
    joined.
    """

    edge_id: str
    device_id: str
    user_id: str
    created_at: str


class GrantCreated(FramePayload, frozen=True, kw_only=True):
    """Something of an Edge is shared with `user_id`, by `owner_id`: its device, or the thread or
    target that is named.
    """

    grant_id: str
    owner_id: str
    owner_name: str
    user_id: str
    user_name: str
    edge_id: str
    role: str
    created_at: str
    thread_id: str | Unset = UNSET
    target_id: str | Unset = UNSET


class GrantRevoked(FramePayload, frozen=True, kw_only=True):
    grant_id: str
    owner_id: str
    user_id: str
    edge_id: str


class EdgePresence(FramePayload, frozen=True, kw_only=True):
    edge_id: str
    device_id: str


class AgentStream(FramePayload, frozen=True, kw_only=True):
    """An event of a task's run, as the Edge's own events say it; `event_seq` is that of the
    journal.
    """

    id: str
    task_id: str
    edge_run_id: str
    session_id: str
    agent_instance_id: str
    event_seq: int
    event_type: str
    payload: dict[str, Any]
    created_at: str


class NotificationNew(FramePayload, frozen=True, kw_only=True):
    """Something that a person should know; `payload` has ids alone."""

    notification_id: str
    type: str
    payload: dict[str, Any]
    title: str | Unset = UNSET
    created_at: str | Unset = UNSET
    expires_at: str | Unset = UNSET


class NotificationUpdated(FramePayload, frozen=True, kw_only=True):
    """A notification was seen or opened on one of the person's screens, or there is nothing left to
    do about it.
    """

    notification_id: str
    seen_at: str | None = None
    opened_at: str | None = None
    closed_at: str | None = None


class ApprovalUpdated(FramePayload, frozen=True, kw_only=True):
    """An approval as it is now: asked for, or a step further. `approval` is what
    `GET /v1/approvals` lists.
    """

    approval_id: str
    device_id: str
    state: str
    approval: dict[str, Any]


class FriendRequest(FramePayload, frozen=True, kw_only=True):
    """Told to both: to who is asked, and to the other screens of who asks."""

    request_id: str
    from_user_id: str
    message: str
    from_name: str
    to_user_id: str
    to_name: str
    created_at: str


class FriendRequestEnded(FramePayload, frozen=True, kw_only=True):
    """A request was refused or withdrawn."""

    request_id: str


class FriendAccepted(FramePayload, frozen=True, kw_only=True):
    """Told to both, each about the other; a request between them is over."""

    friendship_id: str
    user_id: str
    name: str
    created_at: str


class FriendRemoved(FramePayload, frozen=True, kw_only=True):
    friendship_id: str
    user_id: str


class CloudRunnerAllocated(FramePayload, frozen=True, kw_only=True, rename="camel"):
    """A runner was asked for, or has joined as a device. `runner` is what `GET /v1/runners`
    lists.
    """

    runner_id: str
    device_id: str | None
    reason: str
    runner: dict[str, Any]


class CloudRunnerStopping(CloudRunnerAllocated, frozen=True, kw_only=True, rename="camel"):
    """A runner is being stopped, and takes no more tasks."""


class CloudRunnerReleased(CloudRunnerAllocated, frozen=True, kw_only=True, rename="camel"):
    """A runner is gone, and its device with it."""


class TeamUpdated(FramePayload, frozen=True, kw_only=True):
    """A team as it is now. `team` is what `GET /v1/teams` lists."""

    team_id: str
    team: dict[str, Any]


class TeamRemoved(FramePayload, frozen=True, kw_only=True):
    team_id: str


TeamRunChange = Literal[
    "started",
    "member_added",
    "paused",
    "resumed",
    "taken_over",
    "handed_back",
    "supervisor_asked",
    "supervisor_answered",
    "supervisor_dropped",
    "ended",
]


class TeamRunUpdated(FramePayload, frozen=True, kw_only=True):
    """A run of a team was started, paused, resumed, taken over, handed back or ended, has another
    member (`team_member_id`), or its supervising agent was asked or has answered. After
    `supervisor_dropped`, nothing comes of a turn but what it used. `run` is what
    `GET /v1/team-runs` lists, `by` who did it.
    """

    team_id: str
    team_run_id: str
    change: TeamRunChange
    by: dict[str, Any]
    run: dict[str, Any]
    team_member_id: str | Unset = UNSET


class TeamRouteDecided(FramePayload, frozen=True, kw_only=True):
    """A decision of whoever supervises a run, which was accepted; the fields of the decision are
    those of a `CoordinatorRouteDecision`.
    """

    team_id: str
    team_run_id: str
    decision_id: str
    decided_by: dict[str, Any]
    action: str
    next_worker: str | Unset = UNSET
    instructions: str | Unset = UNSET
    reasoning: str | Unset = UNSET
    context: Any | Unset = UNSET
    approved: bool | Unset = UNSET
    feedback: str | Unset = UNSET
    summary: str | Unset = UNSET
    blocked_reason: str | Unset = UNSET
    subtask_id: str | Unset = UNSET
    parent_task_id: str | Unset = UNSET
    correlation_id: str | Unset = UNSET


class TeamRouteRejected(FramePayload, frozen=True, kw_only=True):
    """A decision that a guardrail refused; `reason` is its code."""

    team_id: str
    team_run_id: str
    decision_id: str
    decided_by: dict[str, Any]
    decision: dict[str, Any]
    reason: str
    detail: str


class TeamTaskUpdated(FramePayload, frozen=True, kw_only=True):
    """A task of a run is new, was approved or sent back. `task` is one of the state's."""

    team_id: str
    team_run_id: str
    team_task_id: str
    task: dict[str, Any]


class AssignmentUpdated(FramePayload, frozen=True, kw_only=True):
    """An assignment is new, its device has it, or it has ended. `assignment` is one of the
    state's.
    """

    team_id: str
    team_run_id: str
    team_task_id: str
    assignment_id: str
    agent_task_id: str
    assignment: dict[str, Any]


class TeamApprovalDecided(FramePayload, frozen=True, kw_only=True):
    """What a worker of a run asked was decided by a person, and is on its way to the device."""

    team_id: str
    team_run_id: str
    team_task_id: str
    assignment_id: str
    approval_id: str
    agent_task_id: str
    edge_run_id: str
    decision: str
    decided_by: dict[str, Any]
    edge_control: dict[str, Any]


class FrameType(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table; `logged` frames are events of people, which a cursor resumes."""

    name: str
    payload: type[FramePayload]
    directions: tuple[Direction, ...]
    logged: bool = False


def _event(name: str, payload: type[FramePayload]) -> FrameType:
    return FrameType(name=name, payload=payload, directions=("hub_to_client",), logged=True)


def _to_client(name: str, payload: type[FramePayload]) -> FrameType:
    return FrameType(name=name, payload=payload, directions=("hub_to_client",))


def _to_edge(name: str, payload: type[FramePayload]) -> FrameType:
    return FrameType(name=name, payload=payload, directions=("hub_to_edge",))


def _from_edge(name: str, payload: type[FramePayload], *, is_event: bool = False) -> FrameType:
    to_people: tuple[Direction, ...] = ("hub_to_client",) if is_event else ()
    return FrameType(
        name=name, payload=payload, directions=("edge_to_hub", *to_people), logged=is_event
    )


_ROWS: Final = (
    FrameType(name="auth.ok", payload=AuthOk, directions=("hub_to_client", "hub_to_edge")),
    FrameType(name="auth.fail", payload=AuthFail, directions=("hub_to_client", "hub_to_edge")),
    FrameType(name="error", payload=FrameError, directions=("hub_to_client", "hub_to_edge")),
    _to_client("typing", Typing),
    _event("message.new", MessageNew),
    _event("message.recall", MessageRecall),
    _event("message.pin", MessagePin),
    _event("message.unpin", MessageUnpin),
    _event("message.read", MessageRead),
    _event("message.edited", MessageEdited),
    _event("message.reaction", MessageReaction),
    _event("session.created", SessionCreated),
    _event("session.dissolved", SessionDissolved),
    _event("session.member_joined", SessionMemberJoined),
    _event("session.member_left", SessionMemberLeft),
    _event("session.info_updated", SessionInfoUpdated),
    _event("device.online", DevicePresence),
    _event("device.offline", DevicePresence),
    FrameType(
        name="device.kicked",
        payload=DeviceKicked,
        directions=("hub_to_client", "hub_to_edge"),
        logged=True,
    ),
    _event("device.registered", DeviceRegistered),
    _event("edge.registered", EdgeRegistered),
    _event("grant.created", GrantCreated),
    _event("grant.revoked", GrantRevoked),
    _from_edge("edge.heartbeat", EdgeHeartbeat),
    _event("edge.online", EdgePresence),
    _event("edge.offline", EdgePresence),
    _to_edge("agent.dispatch", AgentDispatch),
    _event("agent.stream", AgentStream),
    _from_edge("agent.done", AgentDone, is_event=True),
    _from_edge("agent.failed", AgentFailed, is_event=True),
    _to_edge("agent.cancel", AgentCancel),
    _to_edge("agent.timeout", AgentTimeout),
    _to_edge("agent.control", AgentControl),
    _event("notification.new", NotificationNew),
    _event("notification.updated", NotificationUpdated),
    _event("approval.updated", ApprovalUpdated),
    _event("friend.request", FriendRequest),
    _event("friend.request_ended", FriendRequestEnded),
    _event("friend.accepted", FriendAccepted),
    _event("friend.removed", FriendRemoved),
    _from_edge("sync.event.uploaded", SyncUploaded),
    _to_edge("sync.ack", SyncAck),
    _to_edge("relay.command.created", RelayCommandCreated),
    _from_edge("relay.command.acknowledged", RelayCommandAcknowledged),
    _from_edge("delivery.ack", DeliveryAck),
    _to_edge("end.ack", EndAck),
    _event("cloud.runner.allocated", CloudRunnerAllocated),
    _event("cloud.runner.stopping", CloudRunnerStopping),
    _event("cloud.runner.released", CloudRunnerReleased),
    _event("team.updated", TeamUpdated),
    _event("team.removed", TeamRemoved),
    _event("team.run.updated", TeamRunUpdated),
    _event("team.route.decided", TeamRouteDecided),
    _event("team.route.rejected", TeamRouteRejected),
    _event("team.task.created", TeamTaskUpdated),
    _event("team.task.updated", TeamTaskUpdated),
    _event("team.approval.decided", TeamApprovalDecided),
    _event("assignment.created", AssignmentUpdated),
    _event("assignment.dispatched", AssignmentUpdated),
    _event("assignment.completed", AssignmentUpdated),
    _event("assignment.failed", AssignmentUpdated),
    _event("assignment.cancelled", AssignmentUpdated),
    _event("assignment.merge_updated", AssignmentUpdated),
)

FRAMES: Final[dict[str, FrameType]] = {row.name: row for row in _ROWS}
"""Type → what its frames are."""

REQUESTS: Final[dict[str, type[FramePayload]]] = {"typing": TypingRequest, "auth": FramePayload}
"""What a person's client may send; `auth` is historic and answered with `auth.fail`."""
