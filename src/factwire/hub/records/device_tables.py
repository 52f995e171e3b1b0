"""Devices: machines whose Edges have joined, how they ask to, and with whom they are shared.

A device belongs to a person and has one session, which ends when the device is revoked. The id of
an Edge is its owner's for good, so that nobody else's upload can pass for it; a device that joins
again replaces the one before, and keeps the mirror. What is shared is an Edge, one of its threads
or one of its targets, so that a grant outlives such a replacement.
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
)

from factwire.facts.resources import GrantRole
from factwire.hub.records.hub_tables import METADATA

AuthorizationKind = Literal["edge", "screen"]
Decision = Literal["confirm", "refuse"]
GrantKind = Literal["device", "thread", "target"]

RunnerState = Literal["starting", "online", "stopping", "released", "failed"]

RUNNER_OPEN: Final[tuple[RunnerState, ...]] = ("starting", "online", "stopping")
RUNNER_ENDS: Final[tuple[RunnerState, ...]] = ("released", "failed")

GRANT_ROLES: Final[tuple[GrantRole, ...]] = ("operator", "approver", "commenter", "viewer")
"""What somebody may do with what is shared with them, the most first."""

devices: Final = Table(
    "devices",
    METADATA,
    Column("device_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    # The session whose tokens the device uses; gone where the device was revoked long ago.
    Column("session_id", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("edge_id", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("version", Text, nullable=False),
    # The agents that the Edge offers, as JSON.
    Column("agents", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    # Whether a socket of the device is open, by what the Hub wrote last.
    Column("online", Boolean, nullable=False),
    # The socket that is the device's, while one is open; any other one of the device is ended.
    Column("connection_id", Text),
    Column("revoked_at", BigInteger),
    CheckConstraint("kind IN ('edge', 'runner')", name="kind"),
    Index(None, "person_id", "created_at", "device_id"),
    Index(None, "edge_id"),
)
# Devices that are here, of which it is written down again and again, however many there have been.
Index(
    None,
    devices.c.connection_id,
    sqlite_where=devices.c.connection_id.is_not(None),
    postgresql_where=devices.c.connection_id.is_not(None),
)
Index(
    None, devices.c.last_seen_at, sqlite_where=devices.c.online, postgresql_where=devices.c.online
)

edges: Final = Table(
    "edges",
    METADATA,
    Column("edge_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    # The device that joined last under this id; it may be revoked.
    Column("device_id", Text, ForeignKey("devices.device_id"), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # How far the mirror is and when something came, as it was written down last.
    Column("cursor", Text),
    Column("uploaded_at", BigInteger),
    Index(None, "person_id", "created_at", "edge_id"),
)

device_authorizations: Final = Table(
    "device_authorizations",
    METADATA,
    # Digests of the code that the device polls with, and of the one that a person types.
    Column("device_code_digest", Text, primary_key=True),
    Column("user_code_digest", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("edge_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("agents", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("user_agent", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("interval_seconds", Integer, nullable=False),
    Column("polled_at", BigInteger),
    # Who decided or, for a screen that claimed a pairing, who alone may.
    Column("person_id", Text, ForeignKey("people.person_id")),
    Column("decision", Text),
    Column("collected_at", BigInteger),
    CheckConstraint("kind IN ('edge', 'screen')", name="kind"),
    CheckConstraint("decision IN ('confirm', 'refuse')", name="decision"),
    Index(None, "expires_at"),
)

pairings: Final = Table(
    "pairings",
    METADATA,
    Column("pairing_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    # The session whose screen shows the code; when it is over, so is the pairing.
    Column("session_id", Text, nullable=False),
    Column("code_digest", Text, nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    # What claimed it, of which there is one.
    Column("device_code_digest", Text),
    Index(None, "person_id", "created_at", "pairing_id"),
    Index(None, "expires_at"),
)

grants: Final = Table(
    "grants",
    METADATA,
    Column("grant_id", Text, primary_key=True),
    Column("owner_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("grantee_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("edge_id", Text, ForeignKey("edges.edge_id"), nullable=False),
    # The thread or the target; the id of the Edge once more where all of it is shared.
    Column("subject_id", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    CheckConstraint("kind IN ('device', 'thread', 'target')", name="kind"),
    CheckConstraint("role IN ('viewer', 'commenter', 'approver', 'operator')", name="role"),
    Index(None, "owner_id", "created_at", "grant_id"),
    Index(None, "grantee_id", "edge_id"),
    Index(None, "edge_id"),
    Index(None, "revoked_at"),
)

# Edges that a Hub starts by a command, each for one person. A runner is kept by the Hub process
# whose data folder its own folder is in. Of the secret that it joins with there is a digest, and
# none once it was used.
runners: Final = Table(
    "runners",
    METADATA,
    Column("runner_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    # Which data folder of a Hub it lives in.
    Column("keeper_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    # Why it ends, or ended.
    Column("reason", Text),
    Column("secret_digest", Text, unique=True),
    Column("device_id", Text, ForeignKey("devices.device_id")),
    Column("created_at", BigInteger, nullable=False),
    # When its command was started last; it has to join soon after that.
    Column("started_at", BigInteger, nullable=False),
    # When it last had a task.
    Column("active_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    CheckConstraint(
        "state IN ('starting', 'online', 'stopping', 'released', 'failed')", name="state"
    ),
    Index(None, "person_id", "created_at", "runner_id"),
    Index(None, "keeper_id", "state"),
)

# Up to where each follower of a mirror has read it, written with what the follower made of it.
follower_positions: Final = Table(
    "follower_positions",
    METADATA,
    Column("follower", Text, primary_key=True),
    Column("edge_id", Text, primary_key=True),
    # The file of the mirror: another journal of the Edge is read from its beginning.
    Column("file", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
)
