"""Notifications, the ledger of their deliveries, and where people want to be reached.

A notification has a title without secrets and ids, nothing else. The ledger has a row for each
channel and target of a notification, which is also the queue of what is to be sent. A target is a
push subscription, a webhook or a mail address; what makes it reachable is sealed with the key of
the Hub, because an endpoint alone lets anybody send.
"""

from typing import Final, Literal

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    and_,
)

from factwire.hub.records.hub_tables import METADATA

Channel = Literal["socket", "web_push", "webhook", "smtp"]
DeliveryState = Literal[
    "queued", "tried", "delivered", "opened", "failed", "expired", "fell_back", "not_needed"
]

notifications: Final = Table(
    "notifications",
    METADATA,
    Column("notification_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    # Ids of what it is about, as JSON.
    Column("payload", Text, nullable=False),
    # What it is about, so that all notifications of one thing can be closed.
    Column("subject_id", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger),
    Column("opened_at", BigInteger),
    # When there was nothing left to do about it.
    Column("closed_at", BigInteger),
    Index(None, "person_id", "created_at", "notification_id"),
    Index(None, "subject_id"),
    Index(None, "created_at"),
)

# Notifications of a person that nobody has seen: they may still be told.
_IS_UNSEEN: Final = and_(notifications.c.seen_at.is_(None), notifications.c.closed_at.is_(None))
Index(
    None,
    notifications.c.person_id,
    notifications.c.expires_at,
    sqlite_where=_IS_UNSEEN,
    postgresql_where=_IS_UNSEEN,
)

notification_deliveries: Final = Table(
    "notification_deliveries",
    METADATA,
    Column("delivery_id", Text, primary_key=True),
    Column("notification_id", Text, ForeignKey("notifications.notification_id"), nullable=False),
    Column("channel", Text, nullable=False),
    # A row of `notification_targets`, or the session of the screen that acknowledged.
    Column("target_id", Text),
    Column("state", Text, nullable=False),
    # Used only if nothing before it was acknowledged.
    Column("is_fallback", Boolean, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # When it is to be tried next; null once there is nothing left to try.
    Column("due_at", BigInteger),
    # Until then one process has it in hand.
    Column("claimed_until", BigInteger),
    Column("tried_at", BigInteger),
    Column("delivered_at", BigInteger),
    Column("opened_at", BigInteger),
    Column("ended_at", BigInteger),
    # Why the last attempt failed.
    Column("code", Text),
    CheckConstraint("channel IN ('socket', 'web_push', 'webhook', 'smtp')", name="channel"),
    Index(None, "notification_id"),
    Index(None, "due_at"),
)

notification_targets: Final = Table(
    "notification_targets",
    METADATA,
    Column("target_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("channel", Text, nullable=False),
    # What a list shows: the host of an endpoint, or the mail address.
    Column("shown", Text, nullable=False),
    # How it is reached, sealed; the digest finds one that is added again.
    Column("sealed", Text, nullable=False),
    Column("digest", Text, nullable=False),
    # The session whose browser it is; with the session, it ends.
    Column("session_id", Text),
    Column("created_at", BigInteger, nullable=False),
    # Null until the person has shown that it is theirs.
    Column("confirmed_at", BigInteger),
    Column("code_digest", Text),
    Column("code_expires_at", BigInteger),
    Column("code_attempts", Integer, nullable=False),
    CheckConstraint("channel IN ('web_push', 'webhook', 'smtp')", name="channel"),
    UniqueConstraint("person_id", "channel", "digest"),
    Index(None, "person_id", "created_at", "target_id"),
)

notification_settings: Final = Table(
    "notification_settings",
    METADATA,
    Column("person_id", Text, ForeignKey("people.person_id"), primary_key=True),
    # Kind → channel → when it is used, as JSON; what is absent is as by default.
    Column("channels", Text, nullable=False),
    # Start, end, time zone and exceptions, as JSON; null where there are none.
    Column("quiet_hours", Text),
)
