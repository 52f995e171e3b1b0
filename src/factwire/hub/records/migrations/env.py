"""Runs migrations on the connection, and in the transaction, that `HubDatabase` opened."""

from alembic import context

from factwire.hub.records.hub_tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
