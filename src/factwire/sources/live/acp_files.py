"""Files that an agent reads and writes through Factwire: of the workspace, and under the policy.

The attack: a path that leads out of the workspace, or a file that a rule forbids. What a person has
just allowed by the agent's own question is not asked about again, but stays bound to its path.
"""

from typing import Any, Final

from factwire.journal.blobs.disk import on_disk
from factwire.projection.reading import word
from factwire.runtime.policy import Request, args_hash, evaluate, risk_of, shown
from factwire.runtime.provider import ActionAsked
from factwire.runtime.toolbox.diffs import whole_diff
from factwire.runtime.toolbox.files import Change, WorkspaceFiles
from factwire.runtime.toolbox.outcomes import ToolRefused
from factwire.sources.live.judging import tell_ruling
from factwire.sources.live.turn import LiveTurn

Params = dict[str, Any]

READ: Final = "fs/read_text_file"
WRITE: Final = "fs/write_text_file"


class AcpFiles:
    """The files of one turn; `allowed` are real paths that a person let the agent change."""

    def __init__(self, live: LiveTurn) -> None:
        self._live = live
        self._files = WorkspaceFiles(live.host.workspace)
        self.allowed: set[str] = set()

    async def serve(self, method: str, params: Params) -> Params | None:
        """Do what is asked; raises `ToolRefused`."""
        return await (self._read if method == READ else self._write)(params)

    async def _read(self, params: Params) -> Params:
        path = await self._located(params)
        await self._may(self._request("read", path), f"Let it read {path}?", is_known=False)
        text = await on_disk(self._files.text, path)
        return {"content": _lines(text, params.get("line"), params.get("limit"))}

    async def _write(self, params: Params) -> None:
        path, after = await self._located(params), params.get("content")
        if not isinstance(after, str):
            raise ToolRefused("invalid_arguments", "expected the content as a text")
        before = await on_disk(self._files.text_if_any, path)
        change = Change(path=path, before=before, after=after)
        is_known = str(self._files.root / path) in self.allowed
        request = self._request("write", path, whole_diff([change]))
        await self._may(request, f"Let it write {path}?", is_known=is_known)
        await on_disk(self._files.apply, [change])

    async def _located(self, params: Params) -> str:
        path = word(params, "path")
        if path is None:
            raise ToolRefused("invalid_arguments", "expected a path")
        return await on_disk(self._files.locate, path)

    def _request(self, tool: str, path: str, diff: str | None = None) -> Request:
        return Request(tool=tool, workspace=str(self._files.root), paths=(path,), diff=diff)

    async def _may(self, request: Request, prompt: str, *, is_known: bool) -> None:
        host = self._live.host
        said = evaluate(host.means.policy, request)
        if said.decision == "deny":
            tell_ruling(self._live, request, said)
            raise ToolRefused("permission_denied", said.message)
        if said.decision == "allow" or is_known:
            return
        asked = ActionAsked(
            action_type="tool_approval",
            prompt=prompt,
            shown=shown(request),
            args_hash=args_hash(request),
            severity=risk_of(request),
            tool_name=request.tool,
            rule=said.rule,
            expires_in=host.means.approval_seconds,
        )
        decision = await host.ask(asked)
        if decision.decided_by is not None:
            await host.applied(decision)
        if not decision.allowed:
            raise ToolRefused("permission_denied", decision.reason or decision.decision)


def _lines(text: str, line: Any, limit: Any) -> str:
    """The part of a file that was asked for; lines count from 1."""
    if type(line) is not int and type(limit) is not int:
        return text
    first = max(line, 1) - 1 if type(line) is int else 0
    last = first + max(limit, 0) if type(limit) is int else None
    return "".join(text.splitlines(keepends=True)[first:last])
