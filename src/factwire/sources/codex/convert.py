"""Codex's app server: both directions of its JSON-RPC as facts."""

from typing import Any, Final

from factwire.facts.json_values import object_at, text_at
from factwire.sources.codex import server_messages
from factwire.sources.codex.server_messages import (
    is_server_request,
    on_answer,
    on_client_request,
    on_request_resolved,
    on_server_request,
)
from factwire.sources.codex.thread_items import CodexSession, on_item
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.source_registry import Source


class CodexAppServer:
    """Converts the lines of one connection, of both sides or of the server alone."""

    def __init__(self, builder: FactBuilder) -> None:
        self.session = CodexSession(builder)

    def take(self, item: dict[str, Any]) -> None:
        session, method = self.session, text_at(item, "method")
        session.set_time(item)
        if method is None:
            _take_answer(session, item)
        elif "id" not in item:
            _take_notification(session, item, method)
        elif is_server_request(method):
            on_server_request(session, item, method)
        elif method.startswith(_CLIENT):
            on_client_request(session, item, method)
        else:
            session.builder.warn_unknown(f"request {method}", item)

    def finish(self) -> None:
        """A turn that was announced last has begun, whatever came of it."""
        self.session.begin_prompt()


def _take_answer(session: CodexSession, item: dict[str, Any]) -> None:
    if "id" in item:
        on_answer(session, item)
    else:
        session.builder.warn_unknown("line without a method", item)


def _take_notification(session: CodexSession, item: dict[str, Any], method: str) -> None:
    params = object_at(item.get("params")) or {}
    handle = _NOTICES.get(method)
    if handle is not None:
        handle(session, params)
    elif method in _ITEMS:
        on_item(session, method, params)
    elif not method.startswith(_QUIET):
        session.builder.warn_unknown(f"notification {method}", item)


_CLIENT: Final = (
    "account/",
    "app/",
    "command/",
    "config/",
    "configRequirements/",
    "experimentalFeature/",
    "externalAgentConfig/",
    "feedback/",
    "fs/",
    "fuzzyFileSearch",
    "hooks/",
    "initialize",
    "marketplace/",
    "mcpServer",
    "model",
    "permissionProfile/",
    "plugin/",
    "review/",
    "skills/",
    "thread",
    "turn/",
    "windowsSandbox/",
)
"""How the methods of a client's requests begin."""

_QUIET: Final = (
    "account/",
    "app/",
    "command/exec/",
    "externalAgentConfig/",
    "fs/",
    "fuzzyFileSearch/",
    "initialized",
    "item/reasoning/summaryPartAdded",
    "mcpServer/",
    "model/safetyBuffering/",
    "model/verification",
    "modelProvider/",
    "process/",
    "project/",
    "remoteControl/",
    "skills/",
    "thread/",
    "turn/moderationMetadata",
    "windows",
)
"""What is about the server, the account or the client's screen, and not about the work."""

_ITEMS: Final = frozenset({"item/started", "item/completed"})

_NOTICES: Final = {
    "thread/started": server_messages.on_thread_started,
    "thread/name/updated": server_messages.on_thread_name,
    "thread/tokenUsage/updated": server_messages.on_token_usage,
    "thread/compacted": server_messages.on_compacted,
    "turn/started": server_messages.on_turn_started,
    "turn/completed": server_messages.on_turn_completed,
    "turn/diff/updated": server_messages.on_diff_updated,
    "turn/plan/updated": server_messages.on_plan_updated,
    "item/agentMessage/delta": server_messages.on_message_delta,
    "item/plan/delta": server_messages.on_plan_delta,
    "item/reasoning/textDelta": server_messages.on_reasoning_delta,
    "item/reasoning/summaryTextDelta": server_messages.on_reasoning_delta,
    "item/commandExecution/outputDelta": server_messages.on_output_delta,
    "item/commandExecution/terminalInteraction": server_messages.on_terminal_input,
    "item/fileChange/outputDelta": server_messages.on_output_delta,
    "item/fileChange/patchUpdated": server_messages.on_patch_updated,
    "item/mcpToolCall/progress": server_messages.on_mcp_progress,
    "item/autoApprovalReview/started": server_messages.on_auto_review,
    "item/autoApprovalReview/completed": server_messages.on_auto_review,
    "serverRequest/resolved": on_request_resolved,
    "hook/started": server_messages.on_hook,
    "hook/completed": server_messages.on_hook,
    "model/rerouted": server_messages.on_rerouted,
    "account/rateLimits/updated": server_messages.on_rate_limits,
    "error": server_messages.on_error,
    "warning": server_messages.on_warning,
    "guardianWarning": server_messages.on_warning,
    "deprecationNotice": server_messages.on_warning,
    "configWarning": server_messages.on_warning,
    "autoApprovalReview/strictReviewRequired": server_messages.on_warning,
}


SOURCE: Final = Source(
    name="codex-app-server",
    title="Codex (app server)",
    framing="lines",
    versions="0.163",
    converter=CodexAppServer,
    maps={
        "thread/started, thread/name/updated": "thread.started, thread.updated",
        "thread/tokenUsage/updated": "cost.recorded, metrics.changed",
        "thread/compacted, contextCompaction": "context.compaction.*, history.compacted",
        "turn/start (client), turn/started, userMessage": "turn.submitted, turn.started",
        "turn/steer (client)": "queue.changed",
        "turn/interrupt (client)": "run.status",
        "turn/completed": "turn.completed, turn.failed or turn.canceled",
        "turn/diff/updated": "artifact.diff.ready",
        "turn/plan/updated, plan": "plan.delta, plan.final",
        "agentMessage": "model.requested, model.delta, model.completed",
        "reasoning": "reasoning.delta, reasoning.summary",
        "commandExecution": "tool.*, tool.output.delta, permission.denied",
        "fileChange": "tool.*, file.changed, permission.denied",
        "mcpToolCall, dynamicToolCall, item/tool/call": "tool.*",
        "webSearch, imageView, sleep, functionCallOutput": "tool.*",
        "imageGeneration": "tool.*, artifact.created",
        "collabAgentToolCall": "tool.*, subagent.*",
        "subAgentActivity, other threads": "task.*, subagent.*",
        "enteredReviewMode, exitedReviewMode": "review.requested, review.completed",
        "hookPrompt": "context.attached",
        "requestApproval and its answer": "permission.*, action.required, action.resolved",
        "item/tool/requestUserInput, mcpServer/elicitation/request": "action.*",
        "serverRequest/resolved": "action.resolved with an unknown decision",
        "item/autoApprovalReview/*": "permission.evaluated or permission.denied",
        "hook/started, hook/completed": "hook.*",
        "model/rerouted": "routing.fallback.applied",
        "account/rateLimits/updated": "limit.changed or rate_limit.hit",
        "error": "run.status and messages.snapshot if it is tried again, else runtime.error",
        "warning, guardianWarning, configWarning, deprecationNotice": "runtime.warning",
    },
    lacks=(
        "times of requests and answers",
        "more than one main thread per recording: any other is shown as a subagent",
        "realtime audio",
    ),
)
