"""Approvals and their rules are an Edge's, whichever device it has joined as; and indexes by which
those are found that have expired.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_approvals_device_id_asked_at_approval_id", "approvals")
    for columns in (
        ("edge_id", "asked_at", "approval_id"),
        ("state", "expires_at"),
        ("code", "expires_at"),
    ):
        op.create_index(f"ix_approvals_{'_'.join(columns)}", "approvals", list(columns))
    op.create_table(
        "edge_rules",
        sa.Column("edge_id", sa.Text, nullable=False),
        sa.Column("required", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("edge_id", name="pk_edge_rules"),
        sa.ForeignKeyConstraint(["edge_id"], ["edges.edge_id"], name="fk_edge_rules_edge_id"),
    )
    # The most that was asked for of an Edge as any device, so that no rule is weaker than it was.
    op.execute(
        "INSERT INTO edge_rules(edge_id, required) "
        "SELECT edges.edge_id, max(approval_rules.required) FROM approval_rules "
        "JOIN devices ON devices.device_id = approval_rules.device_id "
        "JOIN edges ON edges.edge_id = devices.edge_id GROUP BY edges.edge_id"
    )
    op.drop_table("approval_rules")
