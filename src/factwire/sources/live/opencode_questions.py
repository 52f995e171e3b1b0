"""What OpenCode asks while it works: what the policy is to judge, and how an answer is written.

A permission has a name of its own, which is mostly that of the tool. A no goes with its reason,
because OpenCode hears one without as the wish to stop. Access to a folder elsewhere, and files that
a request does not name in full, are a person's to decide.
"""

import os
from collections.abc import Callable
from typing import Any, Final

import msgspec

from factwire.projection.reading import listed, table, word
from factwire.runtime.policy import Request
from factwire.runtime.provider import Decision
from factwire.sources.live.judging import real_paths
from factwire.sources.telling import Telling

Properties = dict[str, Any]

PERMISSION: Final = "permission.asked"
QUESTION: Final = "question.asked"
ASKED: Final = frozenset({PERMISSION, QUESTION})
SETTLED: Final = frozenset({"permission.replied", "question.replied", "question.rejected"})


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the server's; `args` are those of the call that it is about."""

    kind: str
    properties: Properties
    args: Properties
    workspace: str

    @property
    def name(self) -> str:
        return word(self.properties, "id") or ""

    @property
    def session(self) -> str | None:
        return word(self.properties, "sessionID")

    @property
    def call_id(self) -> str | None:
        return word(table(self.properties.get("tool")) or {}, "callID")

    @property
    def metadata(self) -> Properties:
        return table(self.properties.get("metadata")) or {}

    def request(self) -> Request | None:
        """What a policy can judge; None where only a person can."""
        if self.kind != PERMISSION:
            return None
        name = word(self.properties, "permission") or "tool"
        return _REQUESTS.get(name, _other)(self, name)

    def reply(self, decision: Decision) -> tuple[str, Properties | None]:
        """Where an answer goes, and what it says."""
        if self.kind == PERMISSION:
            return f"/permission/{self.name}/reply", _permission(decision)
        if not decision.allowed:
            return f"/question/{self.name}/reject", None
        return f"/question/{self.name}/reply", {"answers": self._answers(decision.response)}

    def decided(self, *, allowed: bool) -> tuple[str, Properties | None]:
        """Where the answer of a rule goes."""
        said = "approved" if allowed else "denied"
        reason = None if allowed else "A rule of the policy denies this."
        return self.reply(Decision(action_id="", allowed=allowed, decision=said, reason=reason))

    def _answers(self, response: Any) -> list[list[str]]:
        """A list for each question, in their order; one alone may be answered by a text."""
        rows = [row for row in map(table, listed(self.properties.get("questions")) or ()) if row]
        given = table(response)
        if given is not None:
            response = listed(given.get("answers")) or [_named(given, row) for row in rows]
        several = listed(response)
        if len(rows) == 1 and not any(listed(each) for each in several or ()):
            return [_texts(response)]
        return [_texts(each) for each in _padded(several or [], len(rows))]


def question_of(kind: str, properties: Properties, telling: Telling, workspace: str) -> Question:
    call = word(table(properties.get("tool")) or {}, "callID")
    tool = telling.tools.get(call or "")
    args = (table(tool.args) or {}) if tool is not None else {}
    return Question(kind=kind, properties=properties, args=args, workspace=workspace)


def _permission(decision: Decision) -> Properties:
    if decision.allowed:
        return {"reply": "always" if decision.response == "always" else "once"}
    return {"reply": "reject", **({"message": decision.reason} if decision.reason else {})}


def _command(question: Question, name: str) -> Request | None:
    command = word(question.metadata, "command") or word(question.args, "command")
    if command is None:
        return None
    [cwd] = real_paths([word(question.args, "workdir") or "."], question.workspace)
    return Request(tool=name, workspace=question.workspace, cwd=cwd, command=command)


def _change(question: Question, name: str) -> Request | None:
    """An edit; a patch of several files names each of them."""
    metadata = question.metadata
    files = [row for row in map(table, listed(metadata.get("files")) or ()) if row]
    names = [word(row, each) for row in files for each in ("filePath", "movePath")]
    paths = [path for path in names if path] or [word(metadata, "filepath") or ""]
    if not all(os.path.isabs(path) for path in paths):  # noqa: PTH117 - only looked at
        return None
    return Request(
        tool=name,
        workspace=question.workspace,
        paths=real_paths(paths, question.workspace),
        diff=word(metadata, "diff"),
    )


def _reading(question: Question, name: str) -> Request:
    path = word(question.args, "filePath", "path") or "."
    paths = real_paths([path], question.workspace)
    return Request(tool=name, workspace=question.workspace, paths=paths)


def _fetching(question: Question, name: str) -> Request | None:
    url = word(question.metadata, "url") or word(question.args, "url")
    return None if url is None else Request(tool=name, workspace=question.workspace, url=url)


def _other(question: Question, name: str) -> Request:
    args = question.metadata or question.args
    return Request(tool=name, workspace=question.workspace, args=args)


def _nobody(question: Question, name: str) -> None:
    del question, name


def _named(given: Properties, row: Properties) -> Any:
    """The answer to a question, by its heading or by its words."""
    header, words_of = word(row, "header") or "", word(row, "question") or ""
    return given.get(header, given.get(words_of))


def _padded(answers: list[Any], count: int) -> list[Any]:
    return (answers + [None] * count)[:count]


def _texts(value: Any) -> list[str]:
    rows = listed(value)
    return [str(row) for row in ([value] if rows is None else rows) if row is not None]


_REQUESTS: Final[dict[str, Callable[[Question, str], Request | None]]] = {
    "bash": _command,
    "doom_loop": _nobody,
    "edit": _change,
    "external_directory": _nobody,
    "glob": _reading,
    "grep": _reading,
    "list": _reading,
    "read": _reading,
    "webfetch": _fetching,
}
