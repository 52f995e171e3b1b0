"""Which assignment of a team task was approved. What was approved before is to be approved again
before it is merged: which assignment was meant is not known.
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("team_tasks", sa.Column("approved_assignment_id", sa.Text()))
