"""What a server asks a person during a call, and the answer as it goes back.

A question is shown with the name of the tool that asks, in full, and the answer is bound to what
was shown. It is no approval of the call: a no to it ends the question, and the tool goes on, so the
request names the call in what is shown and not as what it decides on. A link is shown and never
opened. Yes without an answer that fits the form is no answer.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

import msgspec

from factwire.runtime.policy import Request, args_hash, shown, visible
from factwire.runtime.provider import ActionAsked, Decision
from factwire.runtime.toolbox.calls import Call
from factwire.runtime.toolbox.mcp.limits import MESSAGE_CHARACTERS, QUESTION_CHARACTERS

Reply = Literal["accept", "decline", "cancel"]

_ACTION: Final = "structured_input"
_LINKS: Final = ("https", "http")
_VALUES: Final = (str, int, float, bool)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A form with its `schema`, or a link with its `url`."""

    server: str
    message: str
    schema: dict[str, Any] | None = None
    url: str | None = None

    @property
    def problem(self) -> str | None:
        """Why nobody is asked this."""
        if len(self.message) + len(str(self.schema)) > QUESTION_CHARACTERS:
            return f"a question has at most {QUESTION_CHARACTERS} characters with its form"
        if self.url is not None and urlsplit(self.url).scheme not in _LINKS:
            return "a link is an http or https URL"
        return None


def asked(question: Question, call: Call, workspace: str, seconds: float) -> ActionAsked:
    """The question as a request to a person."""
    about: dict[str, Any] = {"call": call.call_id, "message": question.message}
    if question.schema is not None:
        about["form"] = question.schema
    request = Request(tool=call.name, workspace=workspace, url=question.url, args=about)
    what = "asks you to open a link" if question.url else "asks"
    message = visible(question.message)[:MESSAGE_CHARACTERS]
    return ActionAsked(
        action_type=_ACTION,
        prompt=f"{question.server} {what}: {message}",
        shown=shown(request),
        args_hash=args_hash(request),
        tool_name=call.name,
        subagent_id=call.scope.subagent_id,
        requested_by=f"mcp:{question.server}",
        response_schema=question.schema,
        expires_in=seconds,
    )


def replied(question: Question, decision: Decision | None) -> tuple[Reply, dict[str, Any] | None]:
    """What the server hears; a form that is accepted comes with its content."""
    if decision is None or (not decision.allowed and decision.decided_by is None):
        return "cancel", None
    if not decision.allowed:
        return "decline", None
    if question.schema is None:
        return "accept", None
    content = _content(question.schema, decision.response)
    return ("cancel", None) if content is None else ("accept", content)


def _content(schema: Mapping[str, Any], response: object) -> dict[str, Any] | None:
    """The fields of the form that were filled in; None where the answer is not one to the form."""
    given = cast("dict[str, Any]", response) if isinstance(response, dict) else {}
    fields = cast("dict[str, Any]", schema.get("properties") or {})
    content = {name: given[name] for name in fields if name in given}
    required = cast("list[str]", schema.get("required") or [])
    if any(name not in content for name in required) or not all(map(_fits, content.values())):
        return None
    return content


def _fits(value: object) -> bool:
    """What the protocol lets a field hold."""
    if isinstance(value, list):
        return all(isinstance(each, str) for each in cast("list[object]", value))
    return isinstance(value, _VALUES)
