"""When a task was asked to stop, until when its run is followed, and indexes for what is due."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# A minute after the run ended, a week after the task did, or for as long as it lasts.
_UNTIL = (
    "CASE WHEN edge_run_id IS NULL THEN NULL "
    "WHEN stream_until IS NOT NULL THEN stream_until + 60000 "
    "WHEN ended_at IS NOT NULL THEN ended_at + 604800000 ELSE 9007199254740992 END"
)


def upgrade() -> None:
    # Alembic would make the table anew on SQLite, without its checks.
    op.execute("ALTER TABLE agent_tasks RENAME COLUMN streamed_at TO stream_until")
    op.execute(f"UPDATE agent_tasks SET stream_until = {_UNTIL}")  # noqa: S608 - a constant
    op.add_column("agent_tasks", sa.Column("closing_at", sa.BigInteger))
    op.execute("UPDATE agent_tasks SET closing_at = updated_at WHERE closing IS NOT NULL")
    _index("agent_tasks", "device_id", "stream_until")
    _index("agent_tasks", "edge_run_id")
    _index("agent_tasks", "status", "closing_at")
    has_content = sa.text("content IS NOT NULL")
    op.create_index(
        "ix_deliveries_ended_at",
        "deliveries",
        ["ended_at"],
        sqlite_where=has_content,
        postgresql_where=has_content,
    )


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))
