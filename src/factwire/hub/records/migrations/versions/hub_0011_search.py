"""Words of the index for search belong to a chat, so that those of other chats are never read."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE message_search_new USING fts5(body, detail=full)")
        op.execute(
            "INSERT INTO message_search_new(rowid, body) "
            "SELECT rowid, substr(chat, -16) || replace(body, ' ', ' ' || substr(chat, -16)) "
            "FROM message_search"
        )
        op.execute("DROP TABLE message_search")
        op.execute("ALTER TABLE message_search_new RENAME TO message_search")
    else:
        op.execute(
            "UPDATE message_search SET document = CAST((SELECT string_agg("
            "quote_literal(right(chat.lexeme, 16) || word.lexeme) || ':' || "
            "array_to_string(word.positions, ','), ' ') "
            "FROM unnest(document) AS word, unnest(document) AS chat "
            "WHERE word.lexeme NOT LIKE '#%' AND chat.lexeme LIKE '#%') AS tsvector)"
        )
