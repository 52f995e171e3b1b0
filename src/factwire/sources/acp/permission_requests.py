"""What an agent requests of us as its client: leave, input from a person, and files.

A question is shown as the policy sees it, and its answer is one of the options that the agent
offered. Files are read and written in the workspace only, and the policy is asked first.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from factwire.facts.json_values import list_at, object_at, objects_of, text_at, texts_of
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.action_cards import bind_place, is_same_place, read_place
from factwire.runtime.policy import (
    PolicyRequest,
    assess_risk,
    evaluate,
    follow_links,
    hash_request,
    show_request,
)
from factwire.runtime.provider import Decision, DecisionRequest
from factwire.runtime.toolbox.tool_calls import ToolRefused
from factwire.runtime.toolbox.workspace_files import FileRevision, WorkspaceFiles, join_diffs
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.live_agent import LiveTurn
from factwire.sources.kit.policy_check import add_policy_facts, resolve_paths

Params = dict[str, Any]

READ: Final = "fs/read_text_file"
WRITE: Final = "fs/write_text_file"


class ShownEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit as a request shows it: a file, where it really is, and its text or a part of it,
    before and after.
    """

    path: str
    before: str
    after: str

    def is_made_by(self, path: str, change: FileRevision) -> bool:
        """Whether a change of a file comes to just what was shown."""
        whole = change.before or ""
        results = {self.after} if whole in ("", self.before) else set[str]()
        if self.before:
            results.add(whole.replace(self.before, self.after, 1))
        return path == self.path and change.after in results


class AcpFiles:
    """The files of one turn. A person who allowed an edit has seen its diff, and has allowed that
    and nothing else: another text for the same file is asked about, and so is the same one once the
    workspace is another folder.
    """

    def __init__(self, live: LiveTurn) -> None:
        self._live = live
        self._files = WorkspaceFiles(live.host.workspace)
        self._allowed: list[ShownEdit] = []
        self._place = read_place(str(self._files.root))

    def allow_edits(self, edits: Iterable[ShownEdit]) -> None:
        """Ask no more about edits that a person has allowed."""
        self._allowed += edits

    async def serve(self, method: str, params: Params) -> Params:
        """Do what is asked; raises `ToolRefused`."""
        return await (self._read if method == READ else self._write)(params)

    async def _read(self, params: Params) -> Params:
        path = await self._resolve_path(params)
        await self._require_leave(
            self._make_request("read", path), f"Allow it to read {path}?", is_known=False
        )
        text = await run_disk_work(self._files.text, path)
        return {"content": _cut_lines(text, params.get("line"), params.get("limit"))}

    async def _write(self, params: Params) -> Params:
        path, after = await self._resolve_path(params), params.get("content")
        if not isinstance(after, str):
            raise ToolRefused("invalid_arguments", "expected the content as text")
        before = await run_disk_work(self._files.text_if_any, path)
        change = FileRevision(path=path, before=before, after=after)
        real = str(self._files.root / path)
        is_known = any(edit.is_made_by(real, change) for edit in self._allowed)
        request = self._make_request("write", path, join_diffs([change]))
        is_known = is_known and request.place == self._place
        await self._require_leave(request, f"Allow it to write {path}?", is_known=is_known)
        await run_disk_work(self._files.apply, [change])
        return {}

    async def _resolve_path(self, params: Params) -> str:
        path = text_at(params, "path")
        if path is None:
            raise ToolRefused("invalid_arguments", "expected a path")
        return await run_disk_work(self._files.locate, path)

    def _make_request(self, tool: str, path: str, diff: str | None = None) -> PolicyRequest:
        return bind_place(
            PolicyRequest(tool=tool, workspace=str(self._files.root), paths=(path,), diff=diff)
        )

    async def _require_leave(self, request: PolicyRequest, prompt: str, *, is_known: bool) -> None:
        host = self._live.host
        evaluation = evaluate(host.resources.policy, request)
        if evaluation.decision == "deny":
            add_policy_facts(self._live, request, evaluation)
            raise ToolRefused("permission_denied", evaluation.message)
        if evaluation.decision == "allow" or is_known:
            return
        action = DecisionRequest(
            action_type="tool_approval",
            prompt=prompt,
            shown=show_request(request),
            args_hash=hash_request(request),
            severity=assess_risk(request),
            tool_name=request.tool,
            rule=evaluation.rule,
            expires_in=host.resources.approval_seconds,
        )
        decision = await host.ask(action)
        if decision.decided_by is not None:
            await host.mark_applied(decision)
        if not decision.allowed:
            raise ToolRefused("permission_denied", decision.reason or decision.decision)
        if not is_same_place(request):
            raise ToolRefused(
                "place_changed", "the workspace is another one than when it was shown"
            )


def _cut_lines(text: str, line: Any, limit: Any) -> str:
    """The part of a file that was asked for; lines count from 1."""
    if type(line) is not int and type(limit) is not int:
        return text
    first = max(line, 1) - 1 if type(line) is int else 0
    last = first + max(limit, 0) if type(limit) is int else None
    return "".join(text.splitlines(keepends=True)[first:last])


PERMISSION: Final = "session/request_permission"
ELICITATION: Final = "elicitation/create"
CANCELLED: Final[Params] = {"outcome": {"outcome": "cancelled"}}

_OF_A_COMMAND: Final = frozenset({"command", "cwd", "description", "timeout"})
"""What the input of a call may hold without doing anything but run its command."""

_YES: Final = ("allow_once", "allow_always")
_NO: Final = ("reject_once", "reject_always")


class AcpQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the agent's: its id, and what it is about; `kind` and `args` are those of the
    call as it was told before, where the request does not repeat them.
    """

    number: Any
    method: str
    params: Params
    kind: str
    args: Params
    workspace: str

    @property
    def call_id(self) -> str | None:
        call = object_at(self.params.get("toolCall")) or self.params
        return text_at(call, "toolCallId")

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the call names, where they really are."""
        call = object_at(self.params.get("toolCall")) or {}
        rows = [*(list_at(call.get("content")) or ()), *(list_at(call.get("locations")) or ())]
        found = [path for row in map(object_at, rows) if row and (path := text_at(row, "path"))]
        return tuple(dict.fromkeys(resolve_paths(found, self.workspace)))

    @property
    def edits(self) -> list[ShownEdit]:
        """The edits that the request shows."""
        call = object_at(self.params.get("toolCall")) or {}
        return [
            ShownEdit(path=real, before=text_at(row, "oldText") or "", after=after)
            for row in objects_of(call.get("content"))
            if (path := text_at(row, "path")) and isinstance(after := row.get("newText"), str)
            for real in resolve_paths([path], self.workspace)
        ]

    @property
    def is_whole(self) -> bool:
        """Whether what a policy sees is all that is asked for: of an edit, the diff is more."""
        call = object_at(self.params.get("toolCall")) or {}
        rows = objects_of(call.get("content"))
        return "command" in self.args and not any(text_at(row, "type") == "diff" for row in rows)

    def to_request(self) -> PolicyRequest | None:
        """What a policy can judge."""
        if self.method != PERMISSION:
            return None
        line = self.args.get("command")
        command = line if isinstance(line, str) else tuple(texts_of(line)) or None
        [cwd] = resolve_paths([text_at(self.args, "cwd") or "."], self.workspace)
        request = PolicyRequest(
            tool=self.kind,
            workspace=self.workspace,
            cwd=cwd,
            command=command or None,
            paths=() if command else self.paths,
            url=text_at(self.args, "url"),
            args={} if command and self.args.keys() <= _OF_A_COMMAND else self.args,
        )
        return follow_links(request)

    def to_result(self, decision: Decision) -> Params:
        """What the agent is told."""
        if self.method == ELICITATION:
            return _elicitation_result(decision)
        return self._choose_option(decision)

    def policy_result(self, *, allowed: bool) -> Params:
        """What the agent is told where a rule decides."""
        name = "approved" if allowed else "denied"
        return self.to_result(Decision(action_id="", allowed=allowed, decision=name))

    def _choose_option(self, decision: Decision) -> Params:
        kinds: Sequence[str] = _YES if decision.allowed else _NO
        rows = objects_of(self.params.get("options"))
        fitting = {text_at(row, "optionId"): text_at(row, "kind") or "" for row in rows}
        fitting = {name: kind for name, kind in fitting.items() if name and kind in kinds}
        wanted = object_at(decision.response)
        chosen = text_at(wanted, "optionId", "id") if wanted else decision.response
        if not isinstance(chosen, str) or chosen not in fitting:
            # Not for ever, unless that was what somebody chose.
            once = [name for name, kind in fitting.items() if kind == kinds[0]]
            chosen = next(iter(once if decision.allowed else [*once, *fitting]), None)
        if chosen is None:
            return CANCELLED
        return {"outcome": {"outcome": "selected", "optionId": chosen}}


def read_question(item: Params, builder: FactBuilder, workspace: str) -> AcpQuestion:
    params = object_at(item.get("params")) or {}
    call = object_at(params.get("toolCall")) or {}
    known = builder.tools.get(text_at(call, "toolCallId") or "")
    before = object_at(known.args) if known is not None else None
    return AcpQuestion(
        number=item.get("id"),
        method=text_at(item, "method") or "",
        params=params,
        kind=text_at(call, "kind") or (known.name if known is not None else None) or "other",
        args={**(before or {}), **(object_at(call.get("rawInput")) or {})},
        workspace=workspace,
    )


def _elicitation_result(decision: Decision) -> Params:
    if not decision.allowed:
        return {"action": "decline"}
    return {"action": "accept", "content": object_at(decision.response) or {}}
