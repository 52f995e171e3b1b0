"""Friends, chats, messages, and the index for search, which is FTS5 or a tsvector."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "friend_requests",
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("from_id", sa.Text, nullable=False),
        sa.Column("to_id", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("request_id", name="pk_friend_requests"),
        sa.ForeignKeyConstraint(
            ["from_id"], ["people.person_id"], name="fk_friend_requests_from_id"
        ),
        sa.ForeignKeyConstraint(["to_id"], ["people.person_id"], name="fk_friend_requests_to_id"),
        sa.UniqueConstraint("from_id", "to_id", name="uq_friend_requests_from_id_to_id"),
    )
    op.create_index(
        "ix_friend_requests_from_id_created_at_request_id",
        "friend_requests",
        ["from_id", "created_at", "request_id"],
    )
    op.create_index(
        "ix_friend_requests_to_id_created_at_request_id",
        "friend_requests",
        ["to_id", "created_at", "request_id"],
    )
    op.create_table(
        "friendships",
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("friend_id", sa.Text, nullable=False),
        sa.Column("friendship_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("person_id", "friend_id", name="pk_friendships"),
        sa.ForeignKeyConstraint(
            ["friend_id"], ["people.person_id"], name="fk_friendships_friend_id"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_friendships_person_id"
        ),
    )
    op.create_index(
        "ix_friendships_person_id_created_at_friend_id",
        "friendships",
        ["person_id", "created_at", "friend_id"],
    )
    op.create_table(
        "chats",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("owner_id", sa.Text, nullable=False),
        sa.Column("edge_id", sa.Text),
        sa.Column("thread_id", sa.Text),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("dissolved_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("session_id", name="pk_chats"),
        sa.CheckConstraint("type IN ('private', 'group', 'thread')", name=op.f("ck_chats_type")),
        sa.ForeignKeyConstraint(["owner_id"], ["people.person_id"], name="fk_chats_owner_id"),
    )
    op.create_index("ix_chats_edge_id_thread_id", "chats", ["edge_id", "thread_id"])
    op.create_table(
        "chat_members",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("member_id", sa.Text, nullable=False),
        sa.Column("member_type", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", sa.Text),
        sa.Column("added_by", sa.Text, nullable=False),
        sa.Column("joined_at", sa.BigInteger, nullable=False),
        sa.Column("joined_order", sa.BigInteger, nullable=False),
        sa.Column("last_read_seq", sa.BigInteger, nullable=False),
        sa.Column("device_id", sa.Text),
        sa.Column("agent_type", sa.Text),
        sa.Column("target_id", sa.Text),
        sa.PrimaryKeyConstraint("session_id", "member_id", name="pk_chat_members"),
        sa.CheckConstraint(
            "member_type IN ('user', 'agent')", name=op.f("ck_chat_members_member_type")
        ),
        sa.ForeignKeyConstraint(
            ["added_by"], ["people.person_id"], name="fk_chat_members_added_by"
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name="fk_chat_members_device_id"
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["chats.session_id"], name="fk_chat_members_session_id"
        ),
        sa.UniqueConstraint("session_id", "name_key", name="uq_chat_members_session_id_name_key"),
    )
    op.create_index(
        "ix_chat_members_member_id_joined_at_session_id",
        "chat_members",
        ["member_id", "joined_at", "session_id"],
    )
    op.create_index(
        "ix_chat_members_session_id_joined_order", "chat_members", ["session_id", "joined_order"]
    )
    op.create_table(
        "chat_messages",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("seq_id", sa.BigInteger, nullable=False),
        sa.Column("client_msg_id", sa.Text, nullable=False),
        sa.Column("request_digest", sa.Text, nullable=False),
        sa.Column("sender_id", sa.Text, nullable=False),
        sa.Column("sender_type", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("content_type", sa.Text, nullable=False),
        sa.Column("reply_to_message_id", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("edited_at", sa.BigInteger),
        sa.Column("recalled_at", sa.BigInteger),
        sa.Column("recalled_by", sa.Text),
        sa.Column("pinned_at", sa.BigInteger),
        sa.Column("pinned_by", sa.Text),
        sa.PrimaryKeyConstraint("number", name="pk_chat_messages"),
        sa.CheckConstraint(
            "sender_type IN ('user', 'agent', 'system')", name=op.f("ck_chat_messages_sender_type")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["chats.session_id"], name="fk_chat_messages_session_id"
        ),
        sa.UniqueConstraint("message_id", name="uq_chat_messages_message_id"),
        sa.UniqueConstraint(
            "session_id", "client_msg_id", name="uq_chat_messages_session_id_client_msg_id"
        ),
        sa.UniqueConstraint("session_id", "seq_id", name="uq_chat_messages_session_id_seq_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_chat_messages_session_id_pinned_at", "chat_messages", ["session_id", "pinned_at"]
    )
    op.create_table(
        "chat_reactions",
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("emoji", sa.Text, nullable=False),
        sa.Column("person_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("message_id", "emoji", "person_id", name="pk_chat_reactions"),
        sa.ForeignKeyConstraint(
            ["message_id"], ["chat_messages.message_id"], name="fk_chat_reactions_message_id"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.person_id"], name="fk_chat_reactions_person_id"
        ),
    )
    op.create_table(
        "chat_attachments",
        sa.Column("attachment_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("uploaded_by", sa.Text, nullable=False),
        sa.Column("message_id", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("attachment_id", name="pk_chat_attachments"),
        sa.ForeignKeyConstraint(
            ["message_id"], ["chat_messages.message_id"], name="fk_chat_attachments_message_id"
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["chats.session_id"], name="fk_chat_attachments_session_id"
        ),
        sa.ForeignKeyConstraint(
            ["uploaded_by"], ["people.person_id"], name="fk_chat_attachments_uploaded_by"
        ),
    )
    op.create_index("ix_chat_attachments_created_at", "chat_attachments", ["created_at"])
    op.create_index("ix_chat_attachments_message_id", "chat_attachments", ["message_id"])
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE message_search USING fts5(chat, body, detail=full)")
    else:
        op.execute("CREATE TABLE message_search(number bigint PRIMARY KEY, document tsvector)")
        op.execute("CREATE INDEX ix_message_search_document ON message_search USING gin(document)")
    # What an event is about, by which its content can be taken back.
    op.add_column("events", sa.Column("subject", sa.Text))
    op.create_index("ix_events_subject", "events", ["subject"])
