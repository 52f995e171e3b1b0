"""Tickets for sockets, and which socket is a device's."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "socket_tickets",
        sa.Column("ticket_digest", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("ticket_digest", name="pk_socket_tickets"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_socket_tickets_person_id"
        ),
    )
    op.create_index("ix_socket_tickets_expires_at", "socket_tickets", ["expires_at"])
    op.add_column("devices", sa.Column("connection_id", sa.Text))
