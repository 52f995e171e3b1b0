"""Which decision a vote is part of, by the delivery that carries it.

Of decisions that wait from before, only the person who was last to allow it is known.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("approval_votes", sa.Column("counted_in", sa.Text))
