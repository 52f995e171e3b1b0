"""Runners."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "runners",
        sa.Column("runner_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("keeper_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("secret_digest", sa.Text),
        sa.Column("device_id", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("active_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("runner_id", name="pk_runners"),
        sa.UniqueConstraint("secret_digest", name="uq_runners_secret_digest"),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name="fk_runners_person_id"),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name="fk_runners_device_id"),
        sa.CheckConstraint(
            "state IN ('starting', 'online', 'stopping', 'released', 'failed')",
            name=op.f("ck_runners_state"),
        ),
    )
    op.create_index(
        "ix_runners_person_id_created_at_runner_id",
        "runners",
        ["person_id", "created_at", "runner_id"],
    )
    op.create_index("ix_runners_keeper_id_state", "runners", ["keeper_id", "state"])
