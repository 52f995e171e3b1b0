"""The tables of a Hub, the same on SQLite and PostgreSQL.

Times are milliseconds since 1970, in UTC. No column holds a secret: of passwords there is a slow
hash, of links and refresh tokens a digest. What is here and what the migrations make is compared by
a test, so a change of a table needs a migration.
"""

from typing import Final, Literal

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

Role = Literal["admin", "member", "viewer"]

ROLES: Final[tuple[Role, ...]] = ("admin", "member", "viewer")
"""What somebody may do, the most first."""

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_IS_ROLE: Final = "role IN ('admin', 'member', 'viewer')"

people: Final = Table(
    "people",
    METADATA,
    Column("person_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # The name as it is compared: two that look alike to a reader are one.
    Column("name_key", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    # Empty for somebody who signs in by other means alone. Not null, because SQLite would have to
    # make this table anew for that, to which the others refer.
    Column("password_hash", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
    CheckConstraint(_IS_ROLE, name="role"),
    Index(None, "created_at", "person_id"),
)

sessions: Final = Table(
    "sessions",
    METADATA,
    Column("session_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    # Digests of the refresh token that is valid, and of the one that it replaced.
    Column("token_digest", Text, nullable=False),
    Column("previous_digest", Text),
    Column("rotated_at", BigInteger, nullable=False),
    Column("address", Text, nullable=False),
    Column("user_agent", Text, nullable=False),
    # Set for the session of a device, whose token is another one than people refresh with.
    Column("device_id", Text),
    # What the person calls this place.
    Column("name", Text),
    # How it was opened (password, passkey, provider), and by which passkey or identity; null for a
    # device, and for a session from before this was written down.
    Column("method", Text),
    Column("method_id", Text),
    Index(None, "person_id", "created_at", "session_id"),
    # By these, open sockets of sessions that are over are found.
    Index(None, "ended_at"),
    Index(None, "expires_at"),
)

socket_tickets: Final = Table(
    "socket_tickets",
    METADATA,
    # Digests of tickets with which browsers open sockets, until they are used or expire.
    Column("ticket_digest", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    # A ticket is good only while the session is that asked for it.
    Column("session_id", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "expires_at"),
)

invitations: Final = Table(
    "invitations",
    METADATA,
    Column("invitation_id", Text, primary_key=True),
    Column("token_digest", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    # Null for one that was made on the machine of the Hub itself.
    Column("created_by", Text, ForeignKey("people.person_id")),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("max_uses", Integer, nullable=False),
    Column("uses", Integer, nullable=False),
    Column("revoked_at", BigInteger),
    CheckConstraint(_IS_ROLE, name="role"),
    CheckConstraint("uses >= 0 AND uses <= max_uses", name="uses"),
    Index(None, "created_by", "created_at", "invitation_id"),
)

audit_log: Final = Table(
    "audit_log",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    # Null for the operator at the machine, and for somebody who has not signed in.
    Column("actor_id", Text, ForeignKey("people.person_id")),
    Column("subject_id", Text),
    Column("via", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("details", Text, nullable=False),
    Index(None, "actor_id", "seq"),
    Index(None, "subject_id", "seq"),
    sqlite_autoincrement=True,
)
