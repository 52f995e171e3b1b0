"""What OpenCode asks while it works: what the policy is to judge, and how an answer is written.

A permission has a name of its own, which is mostly that of the tool. A no goes with its reason,
because OpenCode hears one without as the wish to stop. Access to a folder elsewhere, and files that
a request does not name in full, are a person's to decide.
"""

import os
from collections.abc import Callable
from typing import Any, Final

import msgspec

from factwire.facts.json_values import list_at, object_at, objects_of, text_at
from factwire.runtime.policy import PolicyRequest, follow_links
from factwire.runtime.provider import Decision
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.policy_check import resolve_paths

Properties = dict[str, Any]

PERMISSION: Final = "permission.asked"
QUESTION: Final = "question.asked"
ASKED: Final = frozenset({PERMISSION, QUESTION})
SETTLED: Final = frozenset({"permission.replied", "question.replied", "question.rejected"})


class OpenCodeQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the server's; `args` are those of the call that it is about."""

    kind: str
    properties: Properties
    args: Properties
    workspace: str

    @property
    def name(self) -> str:
        return text_at(self.properties, "id") or ""

    @property
    def session(self) -> str | None:
        return text_at(self.properties, "sessionID")

    @property
    def call_id(self) -> str | None:
        return text_at(object_at(self.properties.get("tool")) or {}, "callID")

    @property
    def metadata(self) -> Properties:
        return object_at(self.properties.get("metadata")) or {}

    def to_request(self) -> PolicyRequest | None:
        """What a policy can judge; None where only a person can."""
        if self.kind != PERMISSION:
            return None
        name = text_at(self.properties, "permission") or "tool"
        return _REQUESTS.get(name, _other_request)(self, name)

    def to_reply(self, decision: Decision) -> tuple[str, Properties | None]:
        """Where an answer goes, and what it says."""
        if self.kind == PERMISSION:
            return f"/permission/{self.name}/reply", _permission_reply(decision)
        if not decision.allowed:
            return f"/question/{self.name}/reject", None
        return f"/question/{self.name}/reply", {"answers": self._read_answers(decision.response)}

    def policy_reply(self, *, allowed: bool) -> tuple[str, Properties | None]:
        """Where the answer of a rule goes."""
        verdict = "approved" if allowed else "denied"
        reason = None if allowed else "A policy rule denies this."
        return self.to_reply(
            Decision(action_id="", allowed=allowed, decision=verdict, reason=reason)
        )

    def _read_answers(self, response: Any) -> list[list[str]]:
        """A list for each question, in their order; one alone may be answered by a text."""
        rows = objects_of(self.properties.get("questions"))
        answers = object_at(response)
        if answers is not None:
            response = list_at(answers.get("answers")) or [
                _find_answer(answers, row) for row in rows
            ]
        several = list_at(response)
        if len(rows) == 1 and not any(list_at(each) for each in several or ()):
            return [_read_texts(response)]
        return [_read_texts(each) for each in _pad_answers(several or [], len(rows))]


def read_question(
    kind: str, properties: Properties, builder: FactBuilder, workspace: str
) -> OpenCodeQuestion:
    call = text_at(object_at(properties.get("tool")) or {}, "callID")
    tool = builder.tools.get(call or "")
    args = (object_at(tool.args) or {}) if tool is not None else {}
    return OpenCodeQuestion(kind=kind, properties=properties, args=args, workspace=workspace)


def _permission_reply(decision: Decision) -> Properties:
    if decision.allowed:
        return {"reply": "always" if decision.response == "always" else "once"}
    return {"reply": "reject", **({"message": decision.reason} if decision.reason else {})}


def _command_request(question: OpenCodeQuestion, name: str) -> PolicyRequest | None:
    command = text_at(question.metadata, "command") or text_at(question.args, "command")
    if command is None:
        return None
    [cwd] = resolve_paths([text_at(question.args, "workdir") or "."], question.workspace)
    request = PolicyRequest(tool=name, workspace=question.workspace, cwd=cwd, command=command)
    return follow_links(request)


def _change_request(question: OpenCodeQuestion, name: str) -> PolicyRequest | None:
    """An edit; a patch of several files names each of them."""
    metadata = question.metadata
    files = objects_of(metadata.get("files"))
    names = [text_at(row, each) for row in files for each in ("filePath", "movePath")]
    paths = [path for path in names if path] or [text_at(metadata, "filepath") or ""]
    if not all(os.path.isabs(path) for path in paths):  # noqa: PTH117 - only looked at
        return None
    return PolicyRequest(
        tool=name,
        workspace=question.workspace,
        paths=resolve_paths(paths, question.workspace),
        diff=text_at(metadata, "diff"),
    )


def _read_request(question: OpenCodeQuestion, name: str) -> PolicyRequest:
    path = text_at(question.args, "filePath", "path") or "."
    paths = resolve_paths([path], question.workspace)
    return PolicyRequest(tool=name, workspace=question.workspace, paths=paths)


def _fetch_request(question: OpenCodeQuestion, name: str) -> PolicyRequest | None:
    url = text_at(question.metadata, "url") or text_at(question.args, "url")
    return None if url is None else PolicyRequest(tool=name, workspace=question.workspace, url=url)


def _other_request(question: OpenCodeQuestion, name: str) -> PolicyRequest:
    args = question.metadata or question.args
    return PolicyRequest(tool=name, workspace=question.workspace, args=args)


def _no_request(question: OpenCodeQuestion, name: str) -> None:
    del question, name


def _find_answer(answers: Properties, row: Properties) -> Any:
    """The answer to a question, by its heading or by its words."""
    header, words_of = text_at(row, "header") or "", text_at(row, "question") or ""
    return answers.get(header, answers.get(words_of))


def _pad_answers(answers: list[Any], count: int) -> list[Any]:
    return (answers + [None] * count)[:count]


def _read_texts(value: Any) -> list[str]:
    rows = list_at(value)
    return [str(row) for row in ([value] if rows is None else rows) if row is not None]


_REQUESTS: Final[dict[str, Callable[[OpenCodeQuestion, str], PolicyRequest | None]]] = {
    "bash": _command_request,
    "doom_loop": _no_request,
    "edit": _change_request,
    "external_directory": _no_request,
    "glob": _read_request,
    "grep": _read_request,
    "list": _read_request,
    "read": _read_request,
    "webfetch": _fetch_request,
}
