"""What Codex asks while it works: what the policy is to judge, and how an answer is written.

Each method has a row: the request that a policy sees, if there is one for it to see, and the
result that says what was decided. A no is `decline`: Codex then goes on without, whereas `cancel`
would end its turn.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from factwire.projection.reading import listed, table, word
from factwire.runtime.policy import Request
from factwire.runtime.provider import Decision
from factwire.sources.live.judging import real_paths
from factwire.sources.telling import Telling

Params = dict[str, Any]
_URLS: Final = {"http": "http", "https": "https"}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the server's: its id, and what it is about. `changes` are those of the patch
    that it asks leave for, and `tool` is the call to an MCP server: neither does the request
    itself repeat.
    """

    number: Any
    method: str
    params: Params
    changes: list[Params]
    tool: str | None
    workspace: str

    @property
    def call_id(self) -> str | None:
        return word(self.params, "itemId", "callId")

    @property
    def is_known(self) -> bool:
        return self.method in _ANSWERS

    @property
    def is_whole(self) -> bool:
        """Whether what a policy sees is all that is asked for."""
        more = ("additionalPermissions", "networkApprovalContext", "permissions")
        return all(self.params.get(name) is None for name in more)

    def request(self) -> Request | None:
        """What a policy can judge; None where only a person can."""
        read = _REQUESTS.get(self.method)
        return None if read is None else read(self)

    def result(self, decision: Decision) -> Any:
        """What Codex is told."""
        return _ANSWERS[self.method](self, decision)

    def decided(self, *, allowed: bool) -> Any:
        """What Codex is told where a rule decides."""
        word_of = "approved" if allowed else "denied"
        return self.result(Decision(action_id="", allowed=allowed, decision=word_of))


def question_of(item: Params, telling: Telling, workspace: str) -> Question:
    params = table(item.get("params")) or {}
    tool = telling.tools.get(word(params, "itemId", "callId") or "")
    args = (table(tool.args) or {}) if tool is not None else {}
    changes = [row for row in map(table, listed(args.get("changes")) or ()) if row]
    return Question(
        number=item.get("id"),
        method=word(item, "method") or "",
        params=params,
        changes=changes,
        tool=_tool_of_server(params, telling),
        workspace=workspace,
    )


def _tool_of_server(params: Params, telling: Telling) -> str | None:
    """The open call that an MCP server's question is about: its only one with these arguments."""
    server, meta = word(params, "serverName"), table(params.get("_meta")) or {}
    if server is None or word(meta, "codex_approval_kind") != "mcp_tool_call":
        return None
    given = table(meta.get("tool_params")) or {}
    calls = [tool for tool in telling.tools.values() if (tool.args or {}) == given]
    names = {tool.name for tool in calls if (tool.name or "").startswith(f"{server}.")}
    return names.pop() if len(names) == 1 else None


def _command(question: Question) -> Request | None:
    """A command, or a host that one wants to reach. What is typed into a program that runs is
    nothing that a rule for commands speaks of.
    """
    params, network = question.params, table(question.params.get("networkApprovalContext"))
    cwd = word(params, "cwd") or question.workspace
    if network is not None:
        scheme = _URLS.get(word(network, "protocol") or "")
        if scheme is None:
            return None
        url = f"{scheme}://{word(network, 'host')}"
        return Request(tool="webFetch", workspace=question.workspace, url=url)
    command = word(params, "command")
    if command is None or params.get("kind") not in (None, "command"):
        return None
    [cwd] = real_paths([cwd], question.workspace)
    return Request(tool="commandExecution", workspace=question.workspace, cwd=cwd, command=command)


def _patch(question: Question) -> Request | None:
    """A patch; one that asks to write below a folder from now on is more than a patch."""
    if word(question.params, "grantRoot") is not None or not question.changes:
        return None
    paths = [path for change in question.changes if (path := word(change, "path"))]
    kinds = [table(change.get("kind")) or {} for change in question.changes]
    paths += [path for kind in kinds if (path := word(kind, "move_path"))]
    return Request(
        tool="fileChange",
        workspace=question.workspace,
        paths=real_paths(paths, question.workspace),
        diff="\n".join(word(change, "diff") or "" for change in question.changes),
    )


def _permissions(question: Question) -> Request:
    asked = table(question.params.get("permissions")) or {}
    return Request(tool="permissions", workspace=question.workspace, args=asked, effect="other")


def _server_tool(question: Question) -> Request | None:
    """A call to an MCP server, by the name that rules have for it."""
    if question.tool is None:
        return None
    server, _, tool = question.tool.partition(".")
    meta = table(question.params.get("_meta")) or {}
    return Request(
        tool=f"mcp__{server}__{tool}",
        workspace=question.workspace,
        args=table(meta.get("tool_params")) or {},
        effect="other",
    )


def _decision(question: Question, decision: Decision) -> Any:
    """The option that was chosen, as far as it says the same as the decision."""
    if not decision.allowed:
        stops = decision.response == "cancel"
        return {"decision": "cancel" if stops else "decline"}
    offered = listed(question.params.get("availableDecisions")) or ["accept", "acceptForSession"]
    chosen = decision.response
    name: Any = next(iter(table(chosen) or ()), chosen)
    accepts = isinstance(name, str) and name.startswith("accept")
    return {"decision": chosen if accepts and chosen in offered else "accept"}


def _granted(question: Question, decision: Decision) -> Any:
    """What was asked for, or nothing; no more than that, and for this turn unless it was said."""
    scope = "session" if decision.response == "session" else "turn"
    asked = table(question.params.get("permissions")) or {}
    given = {name: value for name, value in asked.items() if value is not None}
    return {"permissions": given if decision.allowed else {}, "scope": scope}


def _answers(question: Question, decision: Decision) -> Any:
    """Answers by the id of each question; one alone may be answered by a text."""
    rows = [row for row in map(table, listed(question.params.get("questions")) or ()) if row]
    names = [name for row in rows if (name := word(row, "id"))]
    given = table(decision.response)
    if given is None and len(names) == 1:
        given = {names[0]: decision.response}
    if not decision.allowed or given is None:
        return {"answers": {}}
    inner = table(given.get("answers")) or given
    known = {name: _texts(inner[name]) for name in names if name in inner}
    return {"answers": {name: {"answers": texts} for name, texts in known.items() if texts}}


def _texts(value: Any) -> list[str]:
    held = table(value)
    value = held.get("answers") if held is not None else value
    rows = listed(value)
    return [str(row) for row in ([value] if rows is None else rows) if row is not None]


def _elicited(question: Question, decision: Decision) -> Any:
    del question
    if not decision.allowed:
        return {"action": "decline", "content": None}
    return {"action": "accept", "content": table(decision.response) or {}}


_REQUESTS: Final[dict[str, Callable[[Question], Request | None]]] = {
    "item/commandExecution/requestApproval": _command,
    "item/fileChange/requestApproval": _patch,
    "item/permissions/requestApproval": _permissions,
    "mcpServer/elicitation/request": _server_tool,
}
_ANSWERS: Final[dict[str, Callable[[Question, Decision], Any]]] = {
    "item/commandExecution/requestApproval": _decision,
    "item/fileChange/requestApproval": _decision,
    "item/permissions/requestApproval": _granted,
    "item/tool/requestUserInput": _answers,
    "mcpServer/elicitation/request": _elicited,
}
