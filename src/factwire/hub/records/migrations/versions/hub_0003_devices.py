"""Edges, how devices and screens ask to join, and grants."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "edges",
        sa.Column("edge_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("cursor", sa.Text),
        sa.Column("uploaded_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("edge_id", name="pk_edges"),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name="fk_edges_person_id"),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name="fk_edges_device_id"),
    )
    op.create_index(
        "ix_edges_person_id_created_at_edge_id", "edges", ["person_id", "created_at", "edge_id"]
    )
    op.create_table(
        "device_authorizations",
        sa.Column("device_code_digest", sa.Text, nullable=False),
        sa.Column("user_code_digest", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("edge_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("agents", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("user_agent", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("interval_seconds", sa.Integer, nullable=False),
        sa.Column("polled_at", sa.BigInteger),
        sa.Column("person_id", sa.Text),
        sa.Column("decision", sa.Text),
        sa.Column("collected_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("device_code_digest", name="pk_device_authorizations"),
        sa.UniqueConstraint("user_code_digest", name="uq_device_authorizations_user_code_digest"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_device_authorizations_person_id"
        ),
        sa.CheckConstraint(
            "kind IN ('edge', 'screen')", name=op.f("ck_device_authorizations_kind")
        ),
        sa.CheckConstraint(
            "decision IN ('confirm', 'refuse')", name=op.f("ck_device_authorizations_decision")
        ),
    )
    op.create_index("ix_device_authorizations_expires_at", "device_authorizations", ["expires_at"])
    op.create_table(
        "pairings",
        sa.Column("pairing_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("code_digest", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("device_code_digest", sa.Text),
        sa.PrimaryKeyConstraint("pairing_id", name="pk_pairings"),
        sa.UniqueConstraint("code_digest", name="uq_pairings_code_digest"),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name="fk_pairings_person_id"),
    )
    op.create_index(
        "ix_pairings_person_id_created_at_pairing_id",
        "pairings",
        ["person_id", "created_at", "pairing_id"],
    )
    op.create_index("ix_pairings_expires_at", "pairings", ["expires_at"])
    op.create_table(
        "grants",
        sa.Column("grant_id", sa.Text, nullable=False),
        sa.Column("owner_id", sa.Text, nullable=False),
        sa.Column("grantee_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("edge_id", sa.Text, nullable=False),
        sa.Column("subject_id", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("grant_id", name="pk_grants"),
        sa.ForeignKeyConstraint(["owner_id"], ["people.person_id"], name="fk_grants_owner_id"),
        sa.ForeignKeyConstraint(["grantee_id"], ["people.person_id"], name="fk_grants_grantee_id"),
        sa.ForeignKeyConstraint(["edge_id"], ["edges.edge_id"], name="fk_grants_edge_id"),
        sa.CheckConstraint("kind IN ('device', 'thread', 'target')", name=op.f("ck_grants_kind")),
        sa.CheckConstraint(
            "role IN ('viewer', 'commenter', 'approver', 'operator')", name=op.f("ck_grants_role")
        ),
    )
    op.create_index(
        "ix_grants_owner_id_created_at_grant_id", "grants", ["owner_id", "created_at", "grant_id"]
    )
    op.create_index("ix_grants_grantee_id_edge_id", "grants", ["grantee_id", "edge_id"])
    op.create_index("ix_grants_edge_id", "grants", ["edge_id"])
    op.create_index("ix_grants_revoked_at", "grants", ["revoked_at"])
