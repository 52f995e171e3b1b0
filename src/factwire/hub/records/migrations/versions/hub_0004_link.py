"""Targets, tasks and deliveries."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "execution_targets",
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("agent_type", sa.Text),
        sa.Column("project_id", sa.Text),
        sa.Column("work_dir", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("removed_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("target_id", name="pk_execution_targets"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_execution_targets_person_id"
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name="fk_execution_targets_device_id"
        ),
    )
    _index("execution_targets", "person_id", "created_at", "target_id")
    _index("execution_targets", "device_id")
    op.create_table(
        "agent_tasks",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("agent_instance_id", sa.Text, nullable=False),
        sa.Column("trigger_message_id", sa.Text),
        sa.Column("agent_type", sa.Text, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("team", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("closing", sa.Text),
        sa.Column("edge_run_id", sa.Text),
        sa.Column("thread_id", sa.Text),
        sa.Column("stream_epoch", sa.Text),
        sa.Column("stream_seq", sa.BigInteger, nullable=False),
        sa.Column("streamed_at", sa.BigInteger),
        sa.Column("answer", sa.Text),
        sa.Column("result_summary", sa.Text),
        sa.Column("usage", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("timeout_seconds", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("delivered_at", sa.BigInteger),
        sa.Column("heard_at", sa.BigInteger),
        sa.Column("deadline_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("task_id", name="pk_agent_tasks"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_agent_tasks_person_id"
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name="fk_agent_tasks_device_id"
        ),
        sa.CheckConstraint(
            "status IN ('queued', 'delivered', 'running', 'unknown', 'dead', 'done', 'failed', "
            "'cancelled', 'timed_out', 'expired')",
            name=op.f("ck_agent_tasks_status"),
        ),
        sa.CheckConstraint(
            "closing IN ('cancel', 'timeout', 'expire')", name=op.f("ck_agent_tasks_closing")
        ),
    )
    _index("agent_tasks", "device_id", "created_at", "task_id")
    _index("agent_tasks", "person_id", "created_at", "task_id")
    _index("agent_tasks", "device_id", "status")
    _index("agent_tasks", "status", "expires_at")
    _index("agent_tasks", "status", "heard_at")
    _index("agent_tasks", "status", "deadline_at")
    op.create_table(
        "deliveries",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("delivery_id", sa.Text, nullable=False),
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text),
        sa.Column("subject_id", sa.Text),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("next_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("sent_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("code", sa.Text),
        sa.Column("answer", sa.Text),
        sa.Column("content", sa.LargeBinary),
        sa.PrimaryKeyConstraint("position", name="pk_deliveries"),
        sa.UniqueConstraint("delivery_id", name="uq_deliveries_delivery_id"),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name="fk_deliveries_device_id"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_deliveries_person_id"
        ),
        sa.CheckConstraint(
            "kind IN ('dispatch', 'cancel', 'timeout', 'control', 'relay')",
            name=op.f("ck_deliveries_kind"),
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'sent', 'acked', 'refused', 'expired', 'dead')",
            name=op.f("ck_deliveries_state"),
        ),
        sqlite_autoincrement=True,
    )
    _index("deliveries", "device_id", "state", "position")
    _index("deliveries", "state", "expires_at")
    _index("deliveries", "state", "ended_at")
    _index("deliveries", "task_id")
    _index("deliveries", "subject_id")


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))
