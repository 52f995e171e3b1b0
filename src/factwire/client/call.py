"""`Call`: one request to an Edge as a value, and how its answer is read; no I/O.

A POST carries a fresh Idempotency-Key from the moment it is made, so that however often it is sent,
it is done once.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Self, TypeVar

import msgspec
from ulid import ULID

from factwire.client.address import Query
from factwire.client.errors import EdgeProblem, UnreadableAnswer
from factwire.facts import FactError

T = TypeVar("T")

_SAFE: Final = ("GET", "HEAD")


class Answer(msgspec.Struct, frozen=True):
    """What came back; names of headers are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Call(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What to send and how to read what comes; `accepts` are statuses that are no refusals."""

    method: str
    path: str
    read: Callable[[Answer], T]
    query: Query = ()
    body: bytes | None = None
    key: str | None = None
    accepts: tuple[int, ...] = ()

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again when nobody knows what became of it."""
        return self.method in _SAFE or self.key is not None

    @property
    def headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        return headers if self.key is None else {**headers, "Idempotency-Key": self.key}

    def after(self, cursor: str) -> Self:
        """The same question about what follows."""
        others = tuple(pair for pair in self.query if pair[0] not in ("cursor", "since"))
        return msgspec.structs.replace(self, query=(*others, ("cursor", cursor)))

    def result(self, answer: Answer) -> T:
        """What an answer says; raises `EdgeProblem` or `UnreadableAnswer`."""
        if answer.status in self.accepts or 200 <= answer.status < 300:  # noqa: PLR2004 - HTTP
            try:
                return self.read(answer)
            except (msgspec.DecodeError, FactError, KeyError, ValueError) as error:
                raise UnreadableAnswer(
                    f"{self.method} {self.path}: the answer is not of the form that was expected "
                    f"({error}); is it an Edge of another version?"
                ) from error
        raise problem_of(answer)


def get(path: str, read: Callable[[Answer], T], query: Query = ()) -> Call[T]:
    return Call(method="GET", path=path, read=read, query=query)


def post(path: str, read: Callable[[Answer], T], body: Mapping[str, Any] | None = None) -> Call[T]:
    encoded = None if body is None else encode(body)
    return Call(method="POST", path=path, read=read, body=encoded, key=str(ULID()))


def patch(path: str, read: Callable[[Answer], T], body: Mapping[str, Any]) -> Call[T]:
    return Call(method="PATCH", path=path, read=read, body=encode(body))


def delete(path: str, read: Callable[[Answer], T]) -> Call[T]:
    return Call(method="DELETE", path=path, read=read)


def given(**values: Any) -> dict[str, Any]:
    """A body without what was not given."""
    return {name: value for name, value in values.items() if value is not None}


def encode(body: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(body)


def json(kind: type[T]) -> Callable[[Answer], T]:
    """Reads an answer as this type."""
    decoder = msgspec.json.Decoder(kind)
    return lambda answer: decoder.decode(answer.body)


def nothing(_: Answer) -> None:
    """There is nothing to read."""


def problem_of(answer: Answer) -> EdgeProblem:
    """What a refusal says, whoever refused."""
    try:
        said = msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        said = {}
    known = ("type", "title", "status", "code", "detail", "traceId")
    return EdgeProblem(
        answer.status,
        str(said.get("code") or f"http_{answer.status}"),
        str(said.get("detail") or said.get("title") or "whoever answered gave no reason"),
        trace_id=said.get("traceId") or answer.headers.get("x-trace-id"),
        members={name: value for name, value in said.items() if name not in known},
    )
