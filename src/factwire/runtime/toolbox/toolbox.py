"""`Toolbox`: the tools that agents act through, each call under the policy.

First it is known what would be done, then the policy judges that, then a person is asked if need
be, about exactly that; only then is it done. After a restart an open request is taken up again: the
work is made ready anew, and if it is no longer what was shown, nothing is done.
"""

from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from factwire.journal.blobs.blob_store import run_disk_work
from factwire.projection.actions import Action
from factwire.runtime.action_cards import bind_place, is_same_place
from factwire.runtime.mint import FactScope
from factwire.runtime.policy import (
    Evaluation,
    PolicyRequest,
    assess_risk,
    build_denial_fact,
    build_evaluation_fact,
    evaluate,
    evaluate_asking,
    has_new_planted_program,
    hash_request,
    show_request,
    with_remedy,
)
from factwire.runtime.provider import Decision, DecisionRequest, Host
from factwire.runtime.toolbox.file_tools import patch, read, search, write
from factwire.runtime.toolbox.mcp_content import OfferedTool
from factwire.runtime.toolbox.mcp_servers import McpServers
from factwire.runtime.toolbox.run_tool import run
from factwire.runtime.toolbox.tool_calls import ActiveCall, CallResult, ToolOutcome, ToolRefused
from factwire.runtime.toolbox.tool_context import Prepare, PreparedCall, ToolContext
from factwire.runtime.toolbox.workspace_files import WorkspaceFiles
from factwire.runtime.turn_resources import TurnResources

TOOLS: Final[dict[str, Prepare]] = {
    "patch": patch,
    "read": read,
    "run": run,
    "search": search,
    "write": write,
}
"""Name → how the work is made ready."""


class Toolbox:
    """The tools of one turn; whoever uses tools of servers closes it, or uses it as a context."""

    def __init__(self, host: Host, resources: TurnResources | None = None) -> None:
        self._host = host
        self._context = ToolContext(WorkspaceFiles(host.workspace), resources or host.resources)
        self._servers = McpServers(host, self._context)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def list_server_tools(self) -> tuple[OfferedTool, ...]:
        """The tools of the MCP servers that are configured, beside `TOOLS`; starts the servers."""
        return await self._servers.list_tools()

    async def call(
        self,
        name: str,
        args: dict[str, Any],
        *,
        scope: FactScope | None = None,
        always_ask: bool = False,
        call_id: str | None = None,
    ) -> ToolOutcome:
        """Use a tool. `scope` is that of a subagent, or of a step; `always_ask` asks a person even
        where the policy would not. `call_id` is that of a call which the agent itself has started
        and whose arguments it has told.
        """
        own_id = call_id or self._host.mint.ids("call")
        call = ActiveCall(self._host, scope or self._host.scope, own_id, name)
        sound = _can_be_recorded(args)
        if call_id is None:
            call.start(args if sound else {})
        if not sound:
            refusal = "expected arguments that are valid JSON, without incomplete characters"
            return await call.end(CallResult(summary=refusal, category="invalid_arguments"))
        return await self._end_call(call, self._do_call(call, args, always_ask=always_ask))

    async def resume(
        self, action: Action, args: dict[str, Any], *, scope: FactScope | None = None
    ) -> ToolOutcome:
        """Go on with a call that an earlier run of the turn asked a person about."""
        call_id, name = action.tool_call_id or "", action.tool_name or ""
        call = ActiveCall(self._host, scope or self._host.scope, call_id, name)
        return await self._end_call(call, self._resume_call(call, action, args))

    @property
    def is_stopping(self) -> bool:
        return self._context.stopping.is_set()

    async def stop(self) -> None:
        """End what runs and what waits; the calls fail as cancelled."""
        await self._context.stop()

    async def close(self) -> None:
        """End the servers that were started; safe to call again."""
        await self._servers.close()

    async def await_decision(self, asking: Coroutine[Any, Any, Decision]) -> Decision | None:
        """The answer to a request of the host's; None where the turn is told to stop first."""
        return await self._context.unless_stopped(asking)

    async def _end_call(
        self, call: ActiveCall, work: Coroutine[Any, Any, CallResult]
    ) -> ToolOutcome:
        try:
            done = await work
        except ToolRefused as refusal:
            done = CallResult(summary=str(refusal), category=refusal.category, hint=refusal.hint)
        return await call.end(done)

    async def _do_call(
        self, call: ActiveCall, args: dict[str, Any], *, always_ask: bool
    ) -> CallResult:
        work = await self._prepare(call.name, args)
        evaluation = self._check_policy(call, work, always_ask=always_ask)
        if evaluation.decision == "ask" or always_ask:
            request = self._build_request(call, work.request, work.prompt, evaluation)
            request = msgspec.structs.replace(request, args=args)
            await self._await_approval(call, self._host.ask(request))
        return await self._perform(call, work)

    async def _resume_call(
        self, call: ActiveCall, action: Action, args: dict[str, Any]
    ) -> CallResult:
        try:
            work = await self._prepare(call.name, args)
        except ToolRefused as refusal:
            message = f"what was approved can no longer be done: {refusal}"
            raise ToolRefused("approval_changed", message) from refusal
        asking = self._host.await_open(action.action_id, show_request(work.request))
        await self._await_approval(call, asking)
        if hash_request(work.request) != action.args_hash:
            raise ToolRefused(
                "approval_changed", "what was approved differs from what would be done now"
            )
        self._check_policy(call, work)
        return await self._perform(call, work)

    async def _perform(self, call: ActiveCall, work: PreparedCall) -> CallResult:
        if self.is_stopping:
            raise ToolRefused("cancelled", "the call was cancelled")
        if not is_same_place(work.request):
            message = "the workspace or the folder is another one than when this was prepared"
            raise ToolRefused("place_changed", message)
        if await run_disk_work(has_new_planted_program, work.request):
            message = "a program of the command is another file than when this was prepared"
            raise ToolRefused("place_changed", message)
        return await work.perform(call)

    async def _prepare(self, name: str, args: dict[str, Any]) -> PreparedCall:
        prepare = TOOLS.get(name)
        if prepare is None and self._servers.knows(name):
            return await self._prepare_at_server(name, args)
        if prepare is None:
            raise ToolRefused(
                "unknown_tool", f"unknown tool {name!r}; choose from {', '.join(TOOLS)}"
            )
        return _bind_place(await prepare(self._context, args))

    async def _prepare_at_server(self, name: str, args: dict[str, Any]) -> PreparedCall:
        """A server may have to be started first, which takes a while."""
        work = await self._context.unless_stopped(self._servers.prepare(name, args))
        if work is None:
            raise ToolRefused("cancelled", "the call was cancelled")
        return _bind_place(work)

    def _check_policy(
        self, call: ActiveCall, work: PreparedCall, *, always_ask: bool = False
    ) -> Evaluation:
        """What the policy says; a denial ends the call."""
        policy, mint, scope = self._context.resources.policy, self._host.mint, call.scope
        request = about = work.request
        evaluation = (evaluate_asking if always_ask else evaluate)(policy, request)
        if evaluation.decision != "deny" and work.reads:
            looking = PolicyRequest(tool="read", workspace=request.workspace, paths=work.reads)
            seen = evaluate(policy, looking)
            if seen.decision == "deny":
                evaluation, about = seen, looking
        evaluation = with_remedy(policy, about, evaluation, always_ask=always_ask)
        ids = {"tool_call_id": call.call_id}
        self._host.emit(build_evaluation_fact(mint, scope, request, evaluation, **ids))
        if evaluation.decision == "deny":
            self._host.emit(build_denial_fact(mint, scope, request, evaluation, **ids))
            raise ToolRefused("permission_denied", evaluation.message)
        return evaluation

    def _build_request(
        self, call: ActiveCall, request: PolicyRequest, prompt: str, evaluation: Evaluation
    ) -> DecisionRequest:
        subagent = call.scope.subagent_id
        command = request.command
        return DecisionRequest(
            action_type="delegated_permission" if subagent else "tool_approval",
            prompt=prompt,
            shown=show_request(request),
            args_hash=hash_request(request),
            severity=assess_risk(request),
            tool_call_id=call.call_id,
            tool_name=call.name,
            subagent_id=subagent,
            rule=evaluation.rule,
            cwd=request.cwd,
            command=list(command) if isinstance(command, tuple) else command,
            expires_in=self._context.resources.approval_seconds,
        )

    async def _await_approval(
        self, call: ActiveCall, asking: Coroutine[Any, Any, Decision]
    ) -> None:
        call.decision = decision = await self.await_decision(asking)
        if decision is None:
            raise ToolRefused("cancelled", "the call was cancelled while it waited")
        if not decision.allowed:
            if decision.decided_by is not None:
                await call.mark_applied()
            why = f": {decision.reason}" if decision.reason else ""
            raise ToolRefused("permission_denied", f"{decision.decision}{why}")


def _bind_place(work: PreparedCall) -> PreparedCall:
    return msgspec.structs.replace(work, request=bind_place(work.request))


def _can_be_recorded(args: dict[str, Any]) -> bool:
    try:
        msgspec.json.encode(args)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
