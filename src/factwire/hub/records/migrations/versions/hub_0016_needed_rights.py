"""What the author of a delivery must be allowed for as long as it waits."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("needed_role", "thread_id", "target_id"):
        op.add_column("deliveries", sa.Column(name, sa.Text))
    op.execute(
        "UPDATE deliveries SET needed_role = 'operator', "
        "thread_id = (SELECT t.thread_id FROM agent_tasks t WHERE t.task_id = deliveries.task_id), "
        "target_id = (SELECT t.target_id FROM agent_tasks t WHERE t.task_id = deliveries.task_id) "
        "WHERE kind = 'dispatch' AND state IN ('pending', 'sent', 'dead')"
    )
    op.execute(
        "UPDATE deliveries SET needed_role = 'approver', thread_id = "
        "(SELECT a.thread_id FROM approvals a WHERE a.approval_id = deliveries.subject_id) "
        "WHERE kind = 'control' AND state IN ('pending', 'sent', 'dead')"
    )
