"""`Problem`: the one shape of everything an Edge refuses, by RFC 9457 and with a stable code.

The code is for programs and never changes; the words are for people and may. A problem says what
was expected, what came and what to do, and nothing of the machine it happened on.
"""

from http import HTTPStatus
from typing import Any, Final

import msgspec

MEDIA_TYPE: Final = "application/problem+json"


class Problem(Exception):
    """Ends a request with this status; `members` are further members of the document."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        **members: Any,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}
        self.members = members
        super().__init__(f"{code}: {detail}")


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client reads when it was refused."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    trace_id: str


def document_of(problem: Problem, trace_id: str) -> dict[str, Any]:
    """A problem as its JSON document."""
    document = ProblemDocument(
        type=f"urn:factwire:problem:{problem.code}",
        title=HTTPStatus(problem.status).phrase,
        status=problem.status,
        code=problem.code,
        detail=problem.detail,
        trace_id=trace_id,
    )
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return {**plain, **problem.members}


def encoded(problem: Problem, trace_id: str) -> bytes:
    """A problem as bytes, for where no framework stands between."""
    return msgspec.json.encode(document_of(problem, trace_id))
