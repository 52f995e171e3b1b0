"""What Codex asks while it works: what the policy is to judge, and how an answer is written.

Each method has a row: the request that a policy sees, if there is one for it to see, and the
result that says what was decided. A no is `decline`: Codex then goes on without, whereas `cancel`
would end its turn.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from factwire.facts.json_values import list_at, object_at, objects_of, text_at
from factwire.runtime.policy import PolicyRequest, follow_links
from factwire.runtime.provider import Decision
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.policy_check import resolve_paths

Params = dict[str, Any]
_URLS: Final = {"http": "http", "https": "https"}


class CodexQuestion(msgspec.Struct, frozen=True, kw_only=True):
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
        return text_at(self.params, "itemId", "callId")

    @property
    def is_known(self) -> bool:
        return self.method in _ANSWERS

    @property
    def is_whole(self) -> bool:
        """Whether what a policy sees is all that is asked for."""
        more = ("additionalPermissions", "networkApprovalContext", "permissions")
        return all(self.params.get(name) is None for name in more)

    def to_request(self) -> PolicyRequest | None:
        """What a policy can judge; None where only a person can."""
        read = _REQUESTS.get(self.method)
        return None if read is None else read(self)

    def to_result(self, decision: Decision) -> Any:
        """What Codex is told."""
        return _ANSWERS[self.method](self, decision)

    def policy_result(self, *, allowed: bool) -> Any:
        """What Codex is told where a rule decides."""
        word_of = "approved" if allowed else "denied"
        return self.to_result(Decision(action_id="", allowed=allowed, decision=word_of))


def read_question(item: Params, builder: FactBuilder, workspace: str) -> CodexQuestion:
    params = object_at(item.get("params")) or {}
    tool = builder.tools.get(text_at(params, "itemId", "callId") or "")
    args = (object_at(tool.args) or {}) if tool is not None else {}
    changes = objects_of(args.get("changes"))
    return CodexQuestion(
        number=item.get("id"),
        method=text_at(item, "method") or "",
        params=params,
        changes=changes,
        tool=_read_server_tool(params, builder),
        workspace=workspace,
    )


def _read_server_tool(params: Params, builder: FactBuilder) -> str | None:
    """The open call that an MCP server's question is about: its only one with these arguments."""
    server, meta = text_at(params, "serverName"), object_at(params.get("_meta")) or {}
    if server is None or text_at(meta, "codex_approval_kind") != "mcp_tool_call":
        return None
    value = object_at(meta.get("tool_params")) or {}
    calls = [tool for tool in builder.tools.values() if (tool.args or {}) == value]
    names = {tool.name for tool in calls if (tool.name or "").startswith(f"{server}.")}
    return names.pop() if len(names) == 1 else None


def _command_request(question: CodexQuestion) -> PolicyRequest | None:
    """A command, or a host that one wants to reach. What is typed into a program that runs is
    nothing that a rule for commands speaks of.
    """
    params, network = question.params, object_at(question.params.get("networkApprovalContext"))
    cwd = text_at(params, "cwd") or question.workspace
    if network is not None:
        scheme = _URLS.get(text_at(network, "protocol") or "")
        if scheme is None:
            return None
        url = f"{scheme}://{text_at(network, 'host')}"
        return PolicyRequest(tool="webFetch", workspace=question.workspace, url=url)
    command = text_at(params, "command")
    if command is None or params.get("kind") not in (None, "command"):
        return None
    [cwd] = resolve_paths([cwd], question.workspace)
    request = PolicyRequest(
        tool="commandExecution", workspace=question.workspace, cwd=cwd, command=command
    )
    return follow_links(request)


def _patch_request(question: CodexQuestion) -> PolicyRequest | None:
    """A patch; one that asks to write below a folder from now on is more than a patch."""
    if text_at(question.params, "grantRoot") is not None or not question.changes:
        return None
    paths = [path for change in question.changes if (path := text_at(change, "path"))]
    kinds = [object_at(change.get("kind")) or {} for change in question.changes]
    paths += [path for kind in kinds if (path := text_at(kind, "move_path"))]
    return PolicyRequest(
        tool="fileChange",
        workspace=question.workspace,
        paths=resolve_paths(paths, question.workspace),
        diff="\n".join(text_at(change, "diff") or "" for change in question.changes),
    )


def _permissions_request(question: CodexQuestion) -> PolicyRequest:
    request = object_at(question.params.get("permissions")) or {}
    return PolicyRequest(
        tool="permissions", workspace=question.workspace, args=request, effect="other"
    )


def _server_tool_request(question: CodexQuestion) -> PolicyRequest | None:
    """A call to an MCP server, by the name that rules have for it."""
    if question.tool is None:
        return None
    server, _, tool = question.tool.partition(".")
    meta = object_at(question.params.get("_meta")) or {}
    return PolicyRequest(
        tool=f"mcp__{server}__{tool}",
        workspace=question.workspace,
        args=object_at(meta.get("tool_params")) or {},
        effect="other",
    )


def _decision_result(question: CodexQuestion, decision: Decision) -> Any:
    """The option that was chosen, as far as it says the same as the decision."""
    if not decision.allowed:
        stops = decision.response == "cancel"
        return {"decision": "cancel" if stops else "decline"}
    offered = list_at(question.params.get("availableDecisions")) or ["accept", "acceptForSession"]
    chosen = decision.response
    name: Any = next(iter(object_at(chosen) or ()), chosen)
    accepts = isinstance(name, str) and name.startswith("accept")
    return {"decision": chosen if accepts and chosen in offered else "accept"}


def _permissions_result(question: CodexQuestion, decision: Decision) -> Any:
    """What was asked for, or nothing; no more than that, and for this turn unless it was said."""
    scope = "session" if decision.response == "session" else "turn"
    request = object_at(question.params.get("permissions")) or {}
    fields = {name: value for name, value in request.items() if value is not None}
    return {"permissions": fields if decision.allowed else {}, "scope": scope}


def _answers_result(question: CodexQuestion, decision: Decision) -> Any:
    """Answers by the id of each question; one alone may be answered by a text."""
    rows = objects_of(question.params.get("questions"))
    names = [name for row in rows if (name := text_at(row, "id"))]
    value = object_at(decision.response)
    if value is None and len(names) == 1:
        value = {names[0]: decision.response}
    if not decision.allowed or value is None:
        return {"answers": {}}
    inner = object_at(value.get("answers")) or value
    known = {name: _read_texts(inner[name]) for name in names if name in inner}
    return {"answers": {name: {"answers": texts} for name, texts in known.items() if texts}}


def _read_texts(value: Any) -> list[str]:
    held = object_at(value)
    value = held.get("answers") if held is not None else value
    rows = list_at(value)
    return [str(row) for row in ([value] if rows is None else rows) if row is not None]


def _elicitation_result(question: CodexQuestion, decision: Decision) -> Any:
    del question
    if not decision.allowed:
        return {"action": "decline", "content": None}
    return {"action": "accept", "content": object_at(decision.response) or {}}


_REQUESTS: Final[dict[str, Callable[[CodexQuestion], PolicyRequest | None]]] = {
    "item/commandExecution/requestApproval": _command_request,
    "item/fileChange/requestApproval": _patch_request,
    "item/permissions/requestApproval": _permissions_request,
    "mcpServer/elicitation/request": _server_tool_request,
}
_ANSWERS: Final[dict[str, Callable[[CodexQuestion, Decision], Any]]] = {
    "item/commandExecution/requestApproval": _decision_result,
    "item/fileChange/requestApproval": _decision_result,
    "item/permissions/requestApproval": _permissions_result,
    "item/tool/requestUserInput": _answers_result,
    "mcpServer/elicitation/request": _elicitation_result,
}
