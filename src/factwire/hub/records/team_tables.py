"""Teams, their runs, and what members of a run were given to do.

Rows of a run's tasks and decisions are written while the row of the run is locked. The row of an
assignment or of a supervisor's turn is made so, too. It is changed afterwards with the row of its
agent task, whose lock comes first then, or with that of the run once it has ended: so no two
transactions ever wait for each other's rows. `number` counts the rows
of a run, or the members of a team, from 1, in order.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from factwire.hub.records.hub_tables import METADATA

teams: Final = Table(
    "teams",
    METADATA,
    Column("team_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("removed_at", BigInteger),
    Index(None, "person_id", "created_at", "team_id"),
)

team_members: Final = Table(
    "team_members",
    METADATA,
    Column("team_member_id", Text, primary_key=True),
    Column("team_id", Text, ForeignKey("teams.team_id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    # Null for a supervisor who decides by REST.
    Column("agent_type", Text),
    # Ids as JSON: a run is given to one of them.
    Column("device_ids", Text, nullable=False),
    Column("project_id", Text),
    Column("work_dir", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("removed_at", BigInteger),
    CheckConstraint("role IN ('supervisor', 'executor', 'reviewer')", name="role"),
    UniqueConstraint("team_id", "number"),
)

team_runs: Final = Table(
    "team_runs",
    METADATA,
    Column("team_run_id", Text, primary_key=True),
    Column("team_id", Text, ForeignKey("teams.team_id"), nullable=False),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("goal", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("budget_tokens", BigInteger, nullable=False),
    # Who is in the run, each with the device that was chosen for it, as JSON.
    Column("roster", Text, nullable=False),
    Column("summary", Text),
    Column("reason", Text),
    # The agent that supervises and how far it is, as JSON; null where nobody but people decides.
    Column("supervision", Text),
    # Whether the agent is to be asked, whatever else has happened; false while a person decides.
    Column("leads", Boolean, nullable=False, server_default=false()),
    Column("asks", Boolean, nullable=False, server_default=false()),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    CheckConstraint(
        "status IN ('running', 'paused', 'finished', 'failed', 'cancelled')", name="status"
    ),
    Index(None, "person_id", "created_at", "team_run_id"),
    Index(None, "team_id", "status"),
    Index(None, "leads", "status"),
)

team_tasks: Final = Table(
    "team_tasks",
    METADATA,
    Column("team_task_id", Text, primary_key=True),
    Column("team_run_id", Text, ForeignKey("team_runs.team_run_id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("instructions", Text, nullable=False),
    # What the supervisor calls it, and what it belongs to.
    Column("subtask_id", Text),
    Column("parent_task_id", Text),
    # The task whose work is reviewed.
    Column("reviews", Text),
    Column("approved", Boolean),
    # The assignment whose work was approved: what is done after it is not.
    Column("approved_assignment_id", Text),
    Column("feedback", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    CheckConstraint("kind IN ('work', 'review')", name="kind"),
    UniqueConstraint("team_run_id", "subtask_id"),
    UniqueConstraint("team_run_id", "number"),
)

team_assignments: Final = Table(
    "team_assignments",
    METADATA,
    Column("assignment_id", Text, primary_key=True),
    Column("team_id", Text, ForeignKey("teams.team_id"), nullable=False),
    Column("team_run_id", Text, ForeignKey("team_runs.team_run_id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("team_task_id", Text, ForeignKey("team_tasks.team_task_id"), nullable=False),
    Column("team_member_id", Text, nullable=False),
    Column("device_id", Text, ForeignKey("devices.device_id"), nullable=False),
    Column("agent_task_id", Text, nullable=False, unique=True),
    Column("action", Text, nullable=False),
    Column("instructions", Text, nullable=False),
    # The same for the same work for the same member.
    Column("route_key", Text, nullable=False),
    Column("status", Text, nullable=False),
    # The assignment in whose place it is.
    Column("replaces", Text),
    Column("edge_run_id", Text),
    Column("thread_id", Text),
    Column("result_summary", Text),
    Column("error", Text),
    # What the worker changed, and what came of merging that, as JSON.
    Column("changes", Text),
    Column("merge", Text),
    Column("tokens", BigInteger, nullable=False),
    # Whether the supervising agent was asked after it had ended.
    Column("is_told", Boolean, nullable=False, server_default=false()),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("dispatched_at", BigInteger),
    Column("ended_at", BigInteger),
    CheckConstraint(
        "status IN ('created', 'dispatched', 'completed', 'failed', 'cancelled')", name="status"
    ),
    UniqueConstraint("team_run_id", "number"),
    Index(None, "status", "expires_at"),
    Index(None, "replaces"),
    Index(None, "device_id", "edge_run_id"),
)

route_decisions: Final = Table(
    "route_decisions",
    METADATA,
    Column("decision_id", Text, primary_key=True),
    Column("team_run_id", Text, ForeignKey("team_runs.team_run_id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("decision", Text, nullable=False),
    # Who decided, as facts name them.
    Column("decided_by", Text, nullable=False),
    # The code of the guardrail that refused it, and why.
    Column("reason", Text),
    Column("detail", Text),
    Column("assignment_id", Text),
    Column("team_task_id", Text),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("team_run_id", "number"),
)

supervisor_turns: Final = Table(
    "supervisor_turns",
    METADATA,
    Column("agent_task_id", Text, primary_key=True),
    Column("team_run_id", Text, ForeignKey("team_runs.team_run_id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("team_member_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    # The decision that its device reports, as JSON.
    Column("route", Text),
    Column("error", Text),
    Column("tokens", BigInteger, nullable=False),
    Column("edge_run_id", Text),
    Column("thread_id", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    # When the run went on from what came of it.
    Column("settled_at", BigInteger),
    CheckConstraint(
        "status IN ('asked', 'decided', 'refused', 'undecided', 'dropped')", name="status"
    ),
    UniqueConstraint("team_run_id", "number"),
    Index(None, "settled_at", "ended_at"),
)
