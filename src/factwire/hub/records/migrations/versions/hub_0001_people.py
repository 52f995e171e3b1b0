"""People, their sessions, invitations and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_IS_ROLE = "role IN ('admin', 'member', 'viewer')"


def upgrade() -> None:
    op.create_table(
        "people",
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("password_hash", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("disabled_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("person_id", name="pk_people"),
        sa.UniqueConstraint("name_key", name="uq_people_name_key"),
        sa.CheckConstraint(_IS_ROLE, name=op.f("ck_people_role")),
    )
    op.create_index("ix_people_created_at_person_id", "people", ["created_at", "person_id"])
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("token_digest", sa.Text, nullable=False),
        sa.Column("previous_digest", sa.Text),
        sa.Column("rotated_at", sa.BigInteger, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("user_agent", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name="fk_sessions_person_id"),
    )
    op.create_index(
        "ix_sessions_person_id_created_at_session_id",
        "sessions",
        ["person_id", "created_at", "session_id"],
    )
    op.create_table(
        "invitations",
        sa.Column("invitation_id", sa.Text, nullable=False),
        sa.Column("token_digest", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("max_uses", sa.Integer, nullable=False),
        sa.Column("uses", sa.Integer, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("invitation_id", name="pk_invitations"),
        sa.UniqueConstraint("token_digest", name="uq_invitations_token_digest"),
        sa.ForeignKeyConstraint(
            ["created_by"], ["people.person_id"], name="fk_invitations_created_by"
        ),
        sa.CheckConstraint(_IS_ROLE, name=op.f("ck_invitations_role")),
        sa.CheckConstraint("uses >= 0 AND uses <= max_uses", name=op.f("ck_invitations_uses")),
    )
    op.create_index(
        "ix_invitations_created_by_created_at_invitation_id",
        "invitations",
        ["created_by", "created_at", "invitation_id"],
    )
    op.create_table(
        "audit_log",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("actor_id", sa.Text),
        sa.Column("subject_id", sa.Text),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_audit_log"),
        sa.ForeignKeyConstraint(["actor_id"], ["people.person_id"], name="fk_audit_log_actor_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_log_actor_id_seq", "audit_log", ["actor_id", "seq"])
    op.create_index("ix_audit_log_subject_id_seq", "audit_log", ["subject_id", "seq"])
