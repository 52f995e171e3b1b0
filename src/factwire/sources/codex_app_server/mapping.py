"""What each thing that the source emits becomes, as a table for people."""

from typing import Final

from factwire.sources.codex_app_server.converter import CodexAppServer
from factwire.sources.source import Source

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
        "more than one main thread a recording: any other is told as a subagent",
        "realtime audio",
    ),
)
