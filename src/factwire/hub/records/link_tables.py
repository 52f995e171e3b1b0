"""Work for devices: targets, tasks, and the deliveries by which devices get to know of it.

The device of a task is set when the row is made and never changes. A delivery is a row before it is
a frame, so whatever was promised is sent again after any failure, to its device alone; what stops a
task or decides something goes on to the device that has replaced it, if the same Edge joins again.
`position` orders the deliveries of a device.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from factwire.facts.resources import DeliveryKind, DeliveryState
from factwire.hub.records.hub_tables import METADATA

OPEN_STATES: Final[tuple[DeliveryState, ...]] = ("pending", "sent")
"""Deliveries that are sent, or sent again."""

STOPS: Final[tuple[DeliveryKind, ...]] = ("cancel", "timeout")
"""Deliveries that stop a task."""

execution_targets: Final = Table(
    "execution_targets",
    METADATA,
    Column("target_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    # Null where it is a runner, which the Hub starts when there is a task.
    Column("device_id", Text, ForeignKey("devices.device_id")),
    Column("name", Text, nullable=False),
    Column("agent_type", Text),
    Column("project_id", Text),
    Column("work_dir", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("removed_at", BigInteger),
    # So many different people must allow what its tasks ask, if the device itself asks for fewer.
    Column("approvals_required", Integer),
    Index(None, "person_id", "created_at", "target_id"),
    Index(None, "device_id"),
)

agent_tasks: Final = Table(
    "agent_tasks",
    METADATA,
    Column("task_id", Text, primary_key=True),
    # Who asked for it.
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("device_id", Text, ForeignKey("devices.device_id"), nullable=False),
    Column("target_id", Text),
    # The chat that it belongs to, its member that answers, and the message that asked.
    Column("session_id", Text),
    Column("agent_instance_id", Text, nullable=False),
    Column("trigger_message_id", Text),
    Column("agent_type", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    # Ids of a team's run, as JSON.
    Column("team", Text),
    Column("status", Text, nullable=False),
    # Why the Hub asked its Edge to stop it, and when it first did.
    Column("closing", Text),
    Column("closing_at", BigInteger),
    Column("edge_run_id", Text),
    Column("thread_id", Text),
    # How far the run's events were told: a place of the mirror.
    Column("stream_epoch", Text),
    Column("stream_seq", BigInteger, nullable=False),
    # Until when more of them may come; null while no run is known.
    Column("stream_until", BigInteger),
    # The message that the agent writes, so far, as JSON.
    Column("answer", Text),
    Column("result_summary", Text),
    Column("usage", Text),
    Column("error", Text),
    # What was changed in its worktree, and the beginning of the diff.
    Column("changes", Text),
    Column("diff", Text),
    # The frame of its end as JSON, while it waits for the last events of the run, and until when.
    Column("end_frame", Text),
    Column("end_due_at", BigInteger),
    Column("timeout_seconds", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("delivered_at", BigInteger),
    # When the Edge last named it.
    Column("heard_at", BigInteger),
    Column("deadline_at", BigInteger),
    Column("ended_at", BigInteger),
    CheckConstraint(
        "status IN ('queued', 'delivered', 'running', 'unknown', 'dead', 'done', 'failed', "
        "'cancelled', 'timed_out', 'expired')",
        name="status",
    ),
    CheckConstraint("closing IN ('cancel', 'timeout', 'expire')", name="closing"),
    Index(None, "device_id", "created_at", "task_id"),
    Index(None, "person_id", "created_at", "task_id"),
    Index(None, "device_id", "status"),
    Index(None, "device_id", "stream_until"),
    Index(None, "edge_run_id"),
    # By these the scheduler finds what is due.
    Index(None, "status", "expires_at"),
    Index(None, "status", "heard_at"),
    Index(None, "status", "deadline_at"),
    Index(None, "status", "closing_at"),
    Index(None, "end_due_at"),
)

deliveries: Final = Table(
    "deliveries",
    METADATA,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("delivery_id", Text, nullable=False, unique=True),
    Column("device_id", Text, ForeignKey("devices.device_id"), nullable=False),
    # In whose name.
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("task_id", Text),
    # The approval that a decision is about.
    Column("subject_id", Text),
    # The payload of the frame; that of a relayed request is not kept beyond its answer.
    Column("payload", Text, nullable=False),
    # What its author must be allowed for as long as it waits; null where it is sent in any case.
    Column("needed_role", Text),
    Column("thread_id", Text),
    Column("target_id", Text),
    # The digest of a relayed request, by which the same one is known under its key.
    Column("request", Text),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    Column("ended_at", BigInteger),
    # The Edge's code for why it will not do it, or the Hub's for why it was given up.
    Column("code", Text),
    # The Edge's answer: what it acknowledged, and for a while the content of a relayed answer.
    Column("answer", Text),
    Column("content", LargeBinary),
    CheckConstraint("kind IN ('dispatch', 'cancel', 'timeout', 'control', 'relay')", name="kind"),
    CheckConstraint(
        "state IN ('pending', 'sent', 'acked', 'refused', 'expired', 'dead')", name="state"
    ),
    Index(None, "device_id", "state", "position"),
    Index(None, "state", "expires_at"),
    Index(None, "state", "ended_at"),
    Index(None, "task_id"),
    Index(None, "subject_id"),
    sqlite_autoincrement=True,
)
# Answers that are kept: as few as were given of late, however long the past is.
Index(
    None,
    deliveries.c.ended_at,
    sqlite_where=deliveries.c.content.is_not(None),
    postgresql_where=deliveries.c.content.is_not(None),
)
