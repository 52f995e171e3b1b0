"""Friends, chats, their members and their messages.

A friendship is two rows, one for each side, so that every question about somebody's friends names
that somebody. A chat counts its messages in its own row: whoever writes a message holds that row
until the commit, so numbers have no gaps. The index for search is a table of its own kind on each
database; `message_search` makes and asks it.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from factwire.hub.records.hub_tables import METADATA

friend_requests: Final = Table(
    "friend_requests",
    METADATA,
    # There is a row only as long as nobody has answered or withdrawn the request.
    Column("request_id", Text, primary_key=True),
    Column("from_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("to_id", Text, ForeignKey("people.person_id"), nullable=False),
    Column("message", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("from_id", "to_id"),
    Index(None, "from_id", "created_at", "request_id"),
    Index(None, "to_id", "created_at", "request_id"),
)

friendships: Final = Table(
    "friendships",
    METADATA,
    Column("person_id", Text, ForeignKey("people.person_id"), primary_key=True),
    Column("friend_id", Text, ForeignKey("people.person_id"), primary_key=True),
    # The same for both sides.
    Column("friendship_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index(None, "person_id", "created_at", "friend_id"),
)

chats: Final = Table(
    "chats",
    METADATA,
    Column("session_id", Text, primary_key=True),
    Column("type", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("owner_id", Text, ForeignKey("people.person_id"), nullable=False),
    # The mirrored thread that a chat is about.
    Column("edge_id", Text),
    Column("thread_id", Text),
    # The number of the newest message.
    Column("last_seq", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("dissolved_at", BigInteger),
    CheckConstraint("type IN ('private', 'group', 'thread')", name="type"),
    Index(None, "edge_id", "thread_id"),
)

chat_members: Final = Table(
    "chat_members",
    METADATA,
    Column("session_id", Text, ForeignKey("chats.session_id"), primary_key=True),
    # The id of a person, or that of an agent in this chat alone.
    Column("member_id", Text, primary_key=True),
    Column("member_type", Text, nullable=False),
    Column("name", Text, nullable=False),
    # Of agents, the name as it is compared, so that a mention names one of them.
    Column("name_key", Text),
    Column("added_by", Text, ForeignKey("people.person_id"), nullable=False),
    Column("joined_at", BigInteger, nullable=False),
    # Joining is ordered by this number, because two may join in one millisecond.
    Column("joined_order", BigInteger, nullable=False),
    Column("last_read_seq", BigInteger, nullable=False),
    Column("device_id", Text, ForeignKey("devices.device_id")),
    Column("agent_type", Text),
    Column("target_id", Text),
    CheckConstraint("member_type IN ('user', 'agent')", name="member_type"),
    UniqueConstraint("session_id", "name_key"),
    Index(None, "member_id", "joined_at", "session_id"),
    Index(None, "session_id", "joined_order"),
)

chat_messages: Final = Table(
    "chat_messages",
    METADATA,
    # The rowid of the index for search on SQLite, and the order of what is found.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("message_id", Text, nullable=False, unique=True),
    Column("session_id", Text, ForeignKey("chats.session_id"), nullable=False),
    Column("seq_id", BigInteger, nullable=False),
    Column("client_msg_id", Text, nullable=False),
    # Of what was sent first, by which a repeat is told from another message.
    Column("request_digest", Text, nullable=False),
    Column("sender_id", Text, nullable=False),
    Column("sender_type", Text, nullable=False),
    # JSON; empty once the message was recalled.
    Column("content", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("reply_to_message_id", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("edited_at", BigInteger),
    Column("recalled_at", BigInteger),
    Column("recalled_by", Text),
    Column("pinned_at", BigInteger),
    Column("pinned_by", Text),
    CheckConstraint("sender_type IN ('user', 'agent', 'system')", name="sender_type"),
    UniqueConstraint("session_id", "seq_id"),
    UniqueConstraint("session_id", "client_msg_id"),
    Index(None, "session_id", "pinned_at"),
    sqlite_autoincrement=True,
)

chat_reactions: Final = Table(
    "chat_reactions",
    METADATA,
    Column("message_id", Text, ForeignKey("chat_messages.message_id"), primary_key=True),
    Column("emoji", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("people.person_id"), primary_key=True),
    Column("created_at", BigInteger, nullable=False),
)

chat_attachments: Final = Table(
    "chat_attachments",
    METADATA,
    Column("attachment_id", Text, primary_key=True),
    Column("session_id", Text, ForeignKey("chats.session_id"), nullable=False),
    Column("uploaded_by", Text, ForeignKey("people.person_id"), nullable=False),
    # Null until a message names it; nobody but who uploaded it can read it before.
    Column("message_id", Text, ForeignKey("chat_messages.message_id")),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("ref", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index(None, "message_id"),
    Index(None, "created_at"),
)
