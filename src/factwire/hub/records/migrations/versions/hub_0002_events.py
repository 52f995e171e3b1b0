"""Events, who reads them, and devices."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    counter = op.create_table(
        "event_counter",
        sa.Column("epoch", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("floor", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("epoch", name="pk_event_counter"),
    )
    op.bulk_insert(counter, [{"epoch": secrets.token_hex(8), "seq": 0, "floor": 0}])
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("audience", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
    )
    op.create_index("ix_events_audience_seq", "events", ["audience", "seq"])
    op.create_index("ix_events_created_at", "events", ["created_at"])
    op.create_table(
        "audience_members",
        sa.Column("audience", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("from_seq", sa.BigInteger, nullable=False),
        sa.Column("until_seq", sa.BigInteger),
        sa.PrimaryKeyConstraint("audience", "person_id", "from_seq", name="pk_audience_members"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_audience_members_person_id"
        ),
    )
    op.create_index(
        "ix_audience_members_person_id_until_seq", "audience_members", ["person_id", "until_seq"]
    )
    op.create_index("ix_audience_members_from_seq", "audience_members", ["from_seq"])
    op.create_index("ix_audience_members_until_seq", "audience_members", ["until_seq"])
    op.create_table(
        "devices",
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("edge_id", sa.Text, nullable=False),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("agents", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_seen_at", sa.BigInteger, nullable=False),
        sa.Column("online", sa.Boolean, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("device_id", name="pk_devices"),
        sa.UniqueConstraint("session_id", name="uq_devices_session_id"),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name="fk_devices_person_id"),
        sa.CheckConstraint("kind IN ('edge', 'runner')", name=op.f("ck_devices_kind")),
    )
    op.create_index(
        "ix_devices_person_id_created_at_device_id",
        "devices",
        ["person_id", "created_at", "device_id"],
    )
    op.create_index("ix_devices_edge_id", "devices", ["edge_id"])
    # A session of a device is refreshed with the device's own token, never with a refresh token.
    op.add_column("sessions", sa.Column("device_id", sa.Text))
    op.add_column("sessions", sa.Column("name", sa.Text))
    op.create_index("ix_sessions_ended_at", "sessions", ["ended_at"])
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
