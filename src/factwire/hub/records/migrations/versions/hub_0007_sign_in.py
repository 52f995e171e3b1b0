"""Passkeys, identities at providers, and by which of them a session was opened."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "passkeys",
        sa.Column("passkey_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("credential_id", sa.Text, nullable=False),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("sign_count", sa.BigInteger, nullable=False),
        sa.Column("synced", sa.Boolean, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("passkey_id", name="pk_passkeys"),
        sa.UniqueConstraint("credential_id", name="uq_passkeys_credential_id"),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name="fk_passkeys_person_id"),
    )
    op.create_index(
        "ix_passkeys_person_id_created_at_passkey_id",
        "passkeys",
        ["person_id", "created_at", "passkey_id"],
    )
    op.create_table(
        "identities",
        sa.Column("identity_id", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("issuer", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("identity_id", name="pk_identities"),
        sa.UniqueConstraint("issuer", "subject", name="uq_identities_issuer_subject"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_identities_person_id"
        ),
    )
    op.create_index(
        "ix_identities_person_id_created_at_identity_id",
        "identities",
        ["person_id", "created_at", "identity_id"],
    )
    op.create_table(
        "finished_ceremonies",
        sa.Column("ceremony_id", sa.Text, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("ceremony_id", name="pk_finished_ceremonies"),
    )
    op.create_index("ix_finished_ceremonies_expires_at", "finished_ceremonies", ["expires_at"])
    op.add_column("sessions", sa.Column("method", sa.Text))
    op.add_column("sessions", sa.Column("method_id", sa.Text))
