"""The log of events that people read on their sockets, and who reads what of it.

An event is written once, for an audience: one person, the members of a chat, those who may see a
device. Who belongs to an audience is an interval of the log, so that reading it later gives exactly
what was given live, also to somebody who joined or left meanwhile. Every event, every joining and
every leaving takes one number of the counter, in the order of commits.
"""

from typing import Final

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text

from factwire.hub.records.hub_tables import METADATA

event_counter: Final = Table(
    "event_counter",
    METADATA,
    # There is one row; whoever changes it holds it until the commit, which makes the order.
    Column("epoch", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    # Events up to here have been removed.
    Column("floor", BigInteger, nullable=False),
)

events: Final = Table(
    "events",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("audience", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # What an event is about, where its content may have to be taken back.
    Column("subject", Text),
    Index(None, "audience", "seq"),
    Index(None, "created_at"),
    Index(None, "subject"),
)

audience_members: Final = Table(
    "audience_members",
    METADATA,
    Column("audience", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), primary_key=True),
    # Events after `from_seq` and up to `until_seq`, if there is one, are the person's.
    Column("from_seq", BigInteger, primary_key=True),
    Column("until_seq", BigInteger),
    Index(None, "person_id", "until_seq"),
    Index(None, "from_seq"),
    Index(None, "until_seq"),
)
