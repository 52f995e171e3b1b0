"""Ways to sign in beside a password: passkeys, and identities at providers.

A passkey has a public key alone. An identity is what a provider calls somebody, by issuer and
subject, and belongs to one account. What was begun and finished once is remembered until it would
have expired, so that it cannot be finished again.
"""

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Table, Text, UniqueConstraint

from factwire.hub.records.hub_tables import METADATA

passkeys: Final = Table(
    "passkeys",
    METADATA,
    Column("passkey_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    # How the authenticator calls it, and its public key (COSE), both in base64url.
    Column("credential_id", Text, nullable=False, unique=True),
    Column("public_key", Text, nullable=False),
    Column("sign_count", BigInteger, nullable=False),
    # Whether it is kept in more than one place, by what the authenticator says.
    Column("synced", Boolean, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Index(None, "person_id", "created_at", "passkey_id"),
)

identities: Final = Table(
    "identities",
    METADATA,
    Column("identity_id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), nullable=False),
    # The name of the provider in the settings.
    Column("provider", Text, nullable=False),
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    # By what people know it again, such as an e-mail address; nothing is found by it.
    Column("label", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    UniqueConstraint("issuer", "subject"),
    Index(None, "person_id", "created_at", "identity_id"),
)

finished_ceremonies: Final = Table(
    "finished_ceremonies",
    METADATA,
    Column("ceremony_id", Text, primary_key=True),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "expires_at"),
)
