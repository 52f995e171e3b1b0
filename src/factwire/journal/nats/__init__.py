"""A journal in NATS JetStream, shared by processes and machines; needs `factwire[nats]`."""

from factwire.journal.nats.journal import NatsJournal
from factwire.journal.nats.server_connection import AckPromise, DurabilityWarning

__all__ = ["AckPromise", "DurabilityWarning", "NatsJournal"]
