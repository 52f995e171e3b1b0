"""Notifications with their ledger, approvals, and positions in mirrors."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notifications",
        sa.Column("notification_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("subject_id", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger),
        sa.Column("opened_at", sa.BigInteger),
        sa.Column("closed_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("notification_id", name="pk_notifications"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_notifications_person_id"
        ),
    )
    op.create_index(
        "ix_notifications_person_id_created_at_notification_id",
        "notifications",
        ["person_id", "created_at", "notification_id"],
    )
    op.create_index("ix_notifications_subject_id", "notifications", ["subject_id"])
    op.create_table(
        "notification_deliveries",
        sa.Column("delivery_id", sa.Text, nullable=False),
        sa.Column("notification_id", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("is_fallback", sa.Boolean, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("due_at", sa.BigInteger),
        sa.Column("claimed_until", sa.BigInteger),
        sa.Column("tried_at", sa.BigInteger),
        sa.Column("delivered_at", sa.BigInteger),
        sa.Column("opened_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("code", sa.Text),
        sa.PrimaryKeyConstraint("delivery_id", name="pk_notification_deliveries"),
        sa.CheckConstraint(
            "channel IN ('socket', 'web_push', 'webhook', 'smtp')",
            name=op.f("ck_notification_deliveries_channel"),
        ),
        sa.ForeignKeyConstraint(
            ["notification_id"],
            ["notifications.notification_id"],
            name="fk_notification_deliveries_notification_id",
        ),
    )
    op.create_index("ix_notification_deliveries_due_at", "notification_deliveries", ["due_at"])
    op.create_index(
        "ix_notification_deliveries_notification_id", "notification_deliveries", ["notification_id"]
    )
    op.create_table(
        "notification_targets",
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("confirmed_at", sa.BigInteger),
        sa.Column("code_digest", sa.Text),
        sa.Column("code_expires_at", sa.BigInteger),
        sa.Column("code_attempts", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("target_id", name="pk_notification_targets"),
        sa.CheckConstraint(
            "channel IN ('web_push', 'webhook', 'smtp')",
            name=op.f("ck_notification_targets_channel"),
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_notification_targets_person_id"
        ),
        sa.UniqueConstraint(
            "person_id",
            "channel",
            "digest",
            name="uq_notification_targets_person_id_channel_digest",
        ),
    )
    op.create_index(
        "ix_notification_targets_person_id_created_at_target_id",
        "notification_targets",
        ["person_id", "created_at", "target_id"],
    )
    op.create_table(
        "notification_settings",
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("channels", sa.Text, nullable=False),
        sa.Column("quiet_hours", sa.Text),
        sa.PrimaryKeyConstraint("person_id", name="pk_notification_settings"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_notification_settings_person_id"
        ),
    )
    op.create_table(
        "follower_positions",
        sa.Column("follower", sa.Text, nullable=False),
        sa.Column("edge_id", sa.Text, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("follower", "edge_id", name="pk_follower_positions"),
    )
    op.create_table(
        "approvals",
        sa.Column("approval_id", sa.Text, nullable=False),
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("edge_id", sa.Text, nullable=False),
        sa.Column("thread_id", sa.Text),
        sa.Column("action_id", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text),
        sa.Column("fact_id", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("risk_level", sa.Text, nullable=False),
        sa.Column("tool_name", sa.Text),
        sa.Column("summary", sa.Text),
        sa.Column("shown", sa.Text),
        sa.Column("args_hash", sa.Text, nullable=False),
        sa.Column("required", sa.Integer, nullable=False),
        sa.Column("asked_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("delivered_at", sa.BigInteger),
        sa.Column("seen_at", sa.BigInteger),
        sa.Column("decided_at", sa.BigInteger),
        sa.Column("sent_at", sa.BigInteger),
        sa.Column("applied_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("decision", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("decided_by", sa.Text),
        sa.Column("delivery_id", sa.Text),
        sa.Column("code", sa.Text),
        sa.PrimaryKeyConstraint("approval_id", name="pk_approvals"),
        sa.CheckConstraint(
            "state IN ('asked', 'delivered', 'seen', 'decided', 'sent', 'applied', 'expired', "
            "'refused', 'withdrawn')",
            name=op.f("ck_approvals_state"),
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name="fk_approvals_device_id"
        ),
        sa.UniqueConstraint("edge_id", "request_id", name="uq_approvals_edge_id_request_id"),
    )
    op.create_index("ix_approvals_delivery_id", "approvals", ["delivery_id"])
    op.create_index(
        "ix_approvals_device_id_asked_at_approval_id",
        "approvals",
        ["device_id", "asked_at", "approval_id"],
    )
    op.create_table(
        "approval_votes",
        sa.Column("approval_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("args_hash", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("approval_id", "person_id", name="pk_approval_votes"),
        sa.CheckConstraint(
            "decision IN ('allow', 'deny')", name=op.f("ck_approval_votes_decision")
        ),
        sa.ForeignKeyConstraint(
            ["approval_id"], ["approvals.approval_id"], name="fk_approval_votes_approval_id"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_approval_votes_person_id"
        ),
    )
    op.create_table(
        "approval_screens",
        sa.Column("approval_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("delivered_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger),
        sa.PrimaryKeyConstraint(
            "approval_id", "person_id", "channel", "target_id", name="pk_approval_screens"
        ),
        sa.ForeignKeyConstraint(
            ["approval_id"], ["approvals.approval_id"], name="fk_approval_screens_approval_id"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_approval_screens_person_id"
        ),
    )
    op.create_table(
        "approval_rules",
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("required", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("device_id", name="pk_approval_rules"),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name="fk_approval_rules_device_id"
        ),
    )
