"""Approvals: what an Edge's agent asked, who was shown it, who decided, and how far that got.

The source of truth is the mirrored journal; a row is what its facts and the decisions made at the
Hub come to.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from factwire.hub.records.hub_tables import METADATA

_STATES: Final = (
    "'asked', 'delivered', 'seen', 'decided', 'sent', 'applied', 'expired', 'refused', 'withdrawn'"
)

approvals: Final = Table(
    "approvals",
    METADATA,
    Column("approval_id", Text, primary_key=True),
    # The device that the Edge was when it asked; it may have joined as another since.
    Column("device_id", Text, ForeignKey("devices.device_id"), nullable=False),
    Column("edge_id", Text, nullable=False),
    # As the facts name it, and as the Edge's own lists do.
    Column("thread_id", Text),
    Column("action_id", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("run_id", Text),
    # The fact that asked: read again, it asks nothing anew.
    Column("fact_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("risk_level", Text, nullable=False),
    Column("tool_name", Text),
    # What was recorded, after redaction; `shown` only where it is whole, by its hash.
    Column("summary", Text),
    Column("shown", Text),
    Column("args_hash", Text, nullable=False),
    Column("required", Integer, nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("delivered_at", BigInteger),
    Column("seen_at", BigInteger),
    Column("decided_at", BigInteger),
    Column("sent_at", BigInteger),
    Column("applied_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("decision", Text),
    Column("reason", Text),
    # People as the Edge's facts name them, as JSON.
    Column("decided_by", Text),
    # The delivery of the decision to the device.
    Column("delivery_id", Text),
    # Why the device refused the decision, or the Hub closed it.
    Column("code", Text),
    # When its content was removed; what is left tells facts that are read again from new ones.
    Column("removed_at", BigInteger),
    CheckConstraint(f"state IN ({_STATES})", name="state"),
    UniqueConstraint("edge_id", "request_id"),
    Index(None, "edge_id", "asked_at", "approval_id"),
    Index(None, "delivery_id"),
    # By these the scheduler finds what has expired: what is open, and what was lost on the way.
    Index(None, "state", "expires_at"),
    Index(None, "code", "expires_at"),
)

# Approvals of which everything is kept: those of the last days, however long the past is.
Index(
    None,
    approvals.c.ended_at,
    sqlite_where=approvals.c.removed_at.is_(None),
    postgresql_where=approvals.c.removed_at.is_(None),
)

approval_votes: Final = Table(
    "approval_votes",
    METADATA,
    Column("approval_id", Text, ForeignKey("approvals.approval_id"), primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), primary_key=True),
    Column("decision", Text, nullable=False),
    Column("args_hash", Text, nullable=False),
    # The screen on which it was decided.
    Column("session_id", Text, nullable=False),
    Column("reason", Text),
    Column("at", BigInteger, nullable=False),
    # The delivery of the decision that it is part of, which needs the right of this person too.
    Column("counted_in", Text),
    CheckConstraint("decision IN ('allow', 'deny')", name="decision"),
)

approval_screens: Final = Table(
    "approval_screens",
    METADATA,
    Column("approval_id", Text, ForeignKey("approvals.approval_id"), primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), primary_key=True),
    Column("channel", Text, primary_key=True),
    # A session, or a target of notifications.
    Column("target_id", Text, primary_key=True),
    Column("delivered_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger),
)

edge_rules: Final = Table(
    "edge_rules",
    METADATA,
    # Of the Edge, so that it holds when the Edge has joined again.
    Column("edge_id", Text, ForeignKey("edges.edge_id"), primary_key=True),
    # So many different people must allow something before it is allowed.
    Column("required", Integer, nullable=False),
)
