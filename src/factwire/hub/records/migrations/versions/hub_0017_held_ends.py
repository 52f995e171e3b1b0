"""Ends of tasks that wait for the last events of their runs."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_tasks", sa.Column("end_frame", sa.Text))
    op.add_column("agent_tasks", sa.Column("end_due_at", sa.BigInteger))
    op.create_index(op.f("ix_agent_tasks_end_due_at"), "agent_tasks", ["end_due_at"])
