"""Teams, their runs and assignments."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "teams",
        sa.Column("team_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("removed_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("team_id", name="pk_teams"),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name="fk_teams_person_id"),
    )
    op.create_index(
        "ix_teams_person_id_created_at_team_id", "teams", ["person_id", "created_at", "team_id"]
    )
    op.create_table(
        "team_members",
        sa.Column("team_member_id", sa.Text, nullable=False),
        sa.Column("team_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("agent_type", sa.Text),
        sa.Column("device_ids", sa.Text, nullable=False),
        sa.Column("project_id", sa.Text),
        sa.Column("work_dir", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("removed_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("team_member_id", name="pk_team_members"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.team_id"], name="fk_team_members_team_id"),
        sa.UniqueConstraint("team_id", "number", name="uq_team_members_team_id_number"),
        sa.CheckConstraint(
            "role IN ('supervisor', 'executor', 'reviewer')", name=op.f("ck_team_members_role")
        ),
    )
    op.create_table(
        "team_runs",
        sa.Column("team_run_id", sa.Text, nullable=False),
        sa.Column("team_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("goal", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("budget_tokens", sa.BigInteger, nullable=False),
        sa.Column("roster", sa.Text, nullable=False),
        sa.Column("summary", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("team_run_id", name="pk_team_runs"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.team_id"], name="fk_team_runs_team_id"),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name="fk_team_runs_person_id"),
        sa.CheckConstraint(
            "status IN ('running', 'paused', 'finished', 'failed', 'cancelled')",
            name=op.f("ck_team_runs_status"),
        ),
    )
    op.create_index(
        "ix_team_runs_person_id_created_at_team_run_id",
        "team_runs",
        ["person_id", "created_at", "team_run_id"],
    )
    op.create_index("ix_team_runs_team_id_status", "team_runs", ["team_id", "status"])
    op.create_table(
        "team_tasks",
        sa.Column("team_task_id", sa.Text, nullable=False),
        sa.Column("team_run_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("instructions", sa.Text, nullable=False),
        sa.Column("subtask_id", sa.Text),
        sa.Column("parent_task_id", sa.Text),
        sa.Column("reviews", sa.Text),
        sa.Column("approved", sa.Boolean),
        sa.Column("feedback", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("team_task_id", name="pk_team_tasks"),
        sa.ForeignKeyConstraint(
            ["team_run_id"], ["team_runs.team_run_id"], name="fk_team_tasks_team_run_id"
        ),
        sa.UniqueConstraint("team_run_id", "number", name="uq_team_tasks_team_run_id_number"),
        sa.UniqueConstraint(
            "team_run_id", "subtask_id", name="uq_team_tasks_team_run_id_subtask_id"
        ),
        sa.CheckConstraint("kind IN ('work', 'review')", name=op.f("ck_team_tasks_kind")),
    )
    op.create_table(
        "team_assignments",
        sa.Column("assignment_id", sa.Text, nullable=False),
        sa.Column("team_id", sa.Text, nullable=False),
        sa.Column("team_run_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("team_task_id", sa.Text, nullable=False),
        sa.Column("team_member_id", sa.Text, nullable=False),
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("agent_task_id", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("instructions", sa.Text, nullable=False),
        sa.Column("route_key", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("replaces", sa.Text),
        sa.Column("edge_run_id", sa.Text),
        sa.Column("thread_id", sa.Text),
        sa.Column("result_summary", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("dispatched_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("assignment_id", name="pk_team_assignments"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.team_id"], name="fk_team_assignments_team_id"),
        sa.ForeignKeyConstraint(
            ["team_run_id"], ["team_runs.team_run_id"], name="fk_team_assignments_team_run_id"
        ),
        sa.ForeignKeyConstraint(
            ["team_task_id"], ["team_tasks.team_task_id"], name="fk_team_assignments_team_task_id"
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name="fk_team_assignments_device_id"
        ),
        sa.UniqueConstraint("agent_task_id", name="uq_team_assignments_agent_task_id"),
        sa.UniqueConstraint("team_run_id", "number", name="uq_team_assignments_team_run_id_number"),
        sa.CheckConstraint(
            "status IN ('created', 'dispatched', 'completed', 'failed', 'cancelled')",
            name=op.f("ck_team_assignments_status"),
        ),
    )
    op.create_index(
        "ix_team_assignments_device_id_edge_run_id",
        "team_assignments",
        ["device_id", "edge_run_id"],
    )
    op.create_index("ix_team_assignments_replaces", "team_assignments", ["replaces"])
    op.create_index(
        "ix_team_assignments_status_expires_at", "team_assignments", ["status", "expires_at"]
    )
    op.create_table(
        "route_decisions",
        sa.Column("decision_id", sa.Text, nullable=False),
        sa.Column("team_run_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("decided_by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("assignment_id", sa.Text),
        sa.Column("team_task_id", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("decision_id", name="pk_route_decisions"),
        sa.ForeignKeyConstraint(
            ["team_run_id"], ["team_runs.team_run_id"], name="fk_route_decisions_team_run_id"
        ),
        sa.UniqueConstraint("team_run_id", "number", name="uq_route_decisions_team_run_id_number"),
    )
