"""Indexes for what a Hub looks for again and again, of nothing that has ended."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    is_here = "online" if op.get_bind().dialect.name == "postgresql" else "online = 1"
    _index("devices", "connection_id IS NOT NULL", "connection_id")
    _index("devices", is_here, "last_seen_at")
    op.drop_index("ix_approvals_ended_at", "approvals")
    _index("approvals", "removed_at IS NULL", "ended_at")
    _index("notifications", "seen_at IS NULL AND closed_at IS NULL", "person_id", "expires_at")


def _index(table: str, condition: str, *columns: str) -> None:
    where = sa.text(condition)
    op.create_index(
        f"ix_{table}_{'_'.join(columns)}",
        table,
        list(columns),
        sqlite_where=where,
        postgresql_where=where,
    )
