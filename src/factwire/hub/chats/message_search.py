"""Search in messages, the same on SQLite (FTS5) and PostgreSQL (tsvector).

Texts are taken apart here, so that both databases find the same: words without case and accents;
of scripts that put no space between words, every character is one. A message is found that has all
words of a search, in a row where they were written without a space; the last word may be the
beginning of one. Each word of the index begins with its chat, and a search asks for the words of
the chats of whoever asks, newest first and no more than a page: what others say costs it nothing.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Select, text
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.chat_resources import SnippetPart
from factwire.hub.limits import SEARCH_WORDS, WORD_CHARACTERS
from factwire.hub.records.chat_tables import chat_messages

_ALONE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_KEY_CHARACTERS: Final = 16
_NEWEST: Final = 2**62
"""A number that all messages come before."""

_WORDS_AT_ONCE: Final = 2_000
"""Words of the index that one query names, with which both databases can deal."""

_AROUND: Final = 60
"""Characters that a snippet shows on either side of what was found."""


class FoundWord(msgspec.Struct, frozen=True, gc=False):
    """A word of a text, as it is compared, and where it stands."""

    key: str
    start: int
    end: int


def find_words(content: str) -> Iterator[FoundWord]:
    """The words of a text that is in NFC."""
    for match in _WORD.finditer(content):
        key = _fold(match[0])[:WORD_CHARACTERS]
        if key:
            yield FoundWord(key, *match.span())


def _fold(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.casefold())
    kept = "".join(letter for letter in plain if unicodedata.category(letter) != "Mn")
    return "".join(filter(str.isalnum, unicodedata.normalize("NFC", kept.casefold())))


def normalize_text(content: str) -> str:
    return unicodedata.normalize("NFC", content)


class SearchTerm(msgspec.Struct, frozen=True):
    """Words that stand in a row; of the last one, maybe only the beginning."""

    keys: tuple[str, ...]
    is_prefix: bool = False


def parse_search(query: str) -> list[SearchTerm]:
    """What a search asks for; empty where it has no word."""
    pieces = [
        tuple(word.key for word in find_words(piece)) for piece in normalize_text(query).split()
    ]
    found, room = list[tuple[str, ...]](), SEARCH_WORDS
    for keys in filter(None, pieces):
        if room:
            found.append(keys[:room])
            room -= len(found[-1])
    return [SearchTerm(keys, keys is found[-1]) for keys in found]


def to_chat_key(chat_id: str) -> str:
    """What the words of a chat begin with in the index: the random part of its id."""
    return chat_id.rpartition("_")[2][-_KEY_CHARACTERS:].lower()


async def index_message(
    connection: AsyncConnection, number: int, chat_id: str, content: str
) -> None:
    """Have a message that is not in the index found by its text."""
    chat = to_chat_key(chat_id)
    keys = [chat + word.key for word in find_words(normalize_text(content))]
    if not keys:
        return
    if connection.dialect.name == "sqlite":
        await connection.execute(_INSERT_FTS5, {"number": number, "body": " ".join(keys)})
    else:
        document = " ".join(f"'{key}':{place}" for place, key in enumerate(keys, 1))
        await connection.execute(_INSERT_TSVECTOR, {"number": number, "document": document})


async def remove_from_index(connection: AsyncConnection, number: int) -> None:
    removal = _REMOVE_FTS5 if connection.dialect.name == "sqlite" else _REMOVE_TSVECTOR
    await connection.execute(removal, {"number": number})


_REMOVE_FTS5: Final = text("DELETE FROM message_search WHERE rowid = :number")
_REMOVE_TSVECTOR: Final = text("DELETE FROM message_search WHERE number = :number")
_INSERT_FTS5: Final = text("INSERT INTO message_search(rowid, body) VALUES (:number, :body)")
_INSERT_TSVECTOR: Final = text(
    "INSERT INTO message_search(number, document) "
    "VALUES (:number, CAST(CAST(:document AS text) AS tsvector))"
)


# Both stop at a page: FTS5 goes through what it finds in the order of numbers, downwards.
_FIND_FTS5: Final = text(
    "SELECT rowid FROM message_search WHERE message_search MATCH :words AND rowid < :before "
    "ORDER BY rowid DESC LIMIT :limit"
)
_FIND_TSVECTOR: Final = text(
    "SELECT number FROM message_search "
    "WHERE document @@ CAST(CAST(:words AS text) AS tsquery) AND number < :before "
    "ORDER BY number DESC LIMIT :limit"
)


async def find_messages(
    connection: AsyncConnection,
    query: Select[Any],
    terms: Sequence[SearchTerm],
    chat_ids: Sequence[str],
    *,
    before: int | None,
    limit: int,
) -> list[RowMapping]:
    """Messages of a query about `chat_messages` that a search finds in some chats, newest first;
    `before` is the number that they come before.
    """
    if connection.dialect.name == "sqlite":
        statement, to_words = _FIND_FTS5, _to_fts5
    else:
        statement, to_words = _FIND_TSVECTOR, _to_tsquery
    keys = [to_chat_key(each) for each in chat_ids]
    at_once = max(1, _WORDS_AT_ONCE // max(1, sum(len(term.keys) for term in terms)))
    numbers: list[int] = []
    for first in range(0, len(keys) if terms else 0, at_once):
        values = {
            "words": to_words(terms, keys[first : first + at_once]),
            "before": _NEWEST if before is None else before,
            "limit": limit,
        }
        numbers += (await connection.execute(statement, values)).scalars()
    newest = sorted(numbers, reverse=True)[:limit]
    found = query.where(chat_messages.c.number.in_(newest))
    found = found.order_by(chat_messages.c.number.desc())
    return list((await connection.execute(found)).mappings()) if newest else []


# Words have letters and digits alone, so there is nothing in them to be quoted.
def _to_fts5(terms: Sequence[SearchTerm], chats: Sequence[str]) -> str:
    def to_phrase(term: SearchTerm, chat: str) -> str:
        words = " ".join(chat + key for key in term.keys)
        return f'"{words}" *' if term.is_prefix else f'"{words}"'

    found = (" AND ".join(to_phrase(term, chat) for term in terms) for chat in chats)
    return " OR ".join(f"({each})" for each in found)


def _to_tsquery(terms: Sequence[SearchTerm], chats: Sequence[str]) -> str:
    def to_phrase(term: SearchTerm, chat: str) -> str:
        words = " <-> ".join(f"'{chat}{key}'" for key in term.keys)
        return f"({words}:*)" if term.is_prefix else f"({words})"

    found = (" & ".join(to_phrase(term, chat) for term in terms) for chat in chats)
    return " | ".join(f"({each})" for each in found)


def build_snippet(content: str, terms: Sequence[SearchTerm]) -> list[SnippetPart]:
    """The part of a text around the first place that a search found, with all places marked."""
    whole = normalize_text(content)
    spans = list(_find_spans(whole, terms))
    first = spans[0][0] if spans else 0
    start, end = max(0, first - _AROUND), min(len(whole), first + 3 * _AROUND)
    parts = [SnippetPart(text="…")] if start else []
    at = start
    for begin, stop in spans:
        if begin < at or stop > end:
            continue
        if begin > at:
            parts.append(SnippetPart(text=whole[at:begin]))
        parts.append(SnippetPart(text=whole[begin:stop], match=True))
        at = stop
    if at < end:
        parts.append(SnippetPart(text=whole[at:end]))
    return [*parts, SnippetPart(text="…")] if end < len(whole) else parts


def _find_spans(whole: str, terms: Sequence[SearchTerm]) -> Iterator[tuple[int, int]]:
    words = list(find_words(whole))
    for place in range(len(words)):
        for term in terms:
            stretch = words[place : place + len(term.keys)]
            if _matches(tuple(word.key for word in stretch), term):
                yield stretch[0].start, stretch[-1].end
                break


def _matches(keys: tuple[str, ...], term: SearchTerm) -> bool:
    if not term.is_prefix:
        return keys == term.keys
    return (
        len(keys) == len(term.keys)
        and keys[:-1] == term.keys[:-1]
        and keys[-1].startswith(term.keys[-1])
    )
