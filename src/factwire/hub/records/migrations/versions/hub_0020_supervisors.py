"""Agents that supervise the runs of teams."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("team_runs", sa.Column("supervision", sa.Text))
    flags = {"leads": "team_runs", "asks": "team_runs", "is_told": "team_assignments"}
    for name, table in flags.items():
        column = sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())
        op.add_column(table, column)
    op.create_index("ix_team_runs_leads_status", "team_runs", ["leads", "status"])
    op.create_table(
        "supervisor_turns",
        sa.Column("agent_task_id", sa.Text, nullable=False),
        sa.Column("team_run_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("team_member_id", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("route", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("edge_run_id", sa.Text),
        sa.Column("thread_id", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("settled_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("agent_task_id", name="pk_supervisor_turns"),
        sa.ForeignKeyConstraint(
            ["team_run_id"], ["team_runs.team_run_id"], name="fk_supervisor_turns_team_run_id"
        ),
        sa.UniqueConstraint("team_run_id", "number", name="uq_supervisor_turns_team_run_id_number"),
        sa.CheckConstraint(
            "status IN ('asked', 'decided', 'refused', 'undecided', 'dropped')",
            name=op.f("ck_supervisor_turns_status"),
        ),
    )
    op.create_index(
        "ix_supervisor_turns_settled_at_ended_at", "supervisor_turns", ["settled_at", "ended_at"]
    )
