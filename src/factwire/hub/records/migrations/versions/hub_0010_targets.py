"""Targets that are a runner or ask for several approvers, and what of the past is removed."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("execution_targets") as targets:
        targets.alter_column("device_id", existing_type=sa.Text, nullable=True)
        targets.add_column(sa.Column("approvals_required", sa.Integer))
    op.add_column("approvals", sa.Column("removed_at", sa.BigInteger))
    op.create_index("ix_approvals_ended_at", "approvals", ["ended_at"])
    op.create_index("ix_notifications_created_at", "notifications", ["created_at"])
