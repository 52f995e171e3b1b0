"""What tasks changed in their worktrees, and what came of merging that."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_tasks", sa.Column("changes", sa.Text))
    op.add_column("agent_tasks", sa.Column("diff", sa.Text))
    op.add_column("team_assignments", sa.Column("changes", sa.Text))
    op.add_column("team_assignments", sa.Column("merge", sa.Text))
