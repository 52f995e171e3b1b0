"""The lists of the specification, written down a second time.

Tables in the package are compared with these, so that a class or a word that is dropped or misspelt
there is found. Nothing here is imported from the package. Lists are written as the specification
writes them, as words.
"""

# ruff: noqa: SIM905

import re

KINDS = """context source skill tool permission sandbox state model draft handoff action evidence
    note""".split()
STATUSES = "pending running completed blocked canceled failed".split()
OWNERS = """runtime model tool action artifact evidence context policy task session diagnostics
    ui_projection agent team unknown""".split()
SCOPES = """application workspace team session thread run turn message part task agent tool_call
    action_request artifact evidence unknown""".split()
PHASES = """draft submitted accepted routing preparing planning reasoning acting waiting reviewing
    producing reconciling completed failed cancelled interrupted archived hydrating
    unknown""".split()
SURFACES = """composer conversation inline_process runtime_status tool_ui hitl task_capsule
    artifact_workspace timeline_evidence session_tabs diagnostics team_roster work_board
    delegation_graph handoff_lane worker_notifications review_lane teammate_transcript
    background_teammate remote_teammate team_policy custom unknown""".split()
PERSISTENCE = """ephemeral_live transcript snapshot archive artifact_store evidence_pack
    diagnostics_log ui_local unknown""".split()
CONTROLS = """send queue steer interrupt delegate assign continue_agent wait stop close
    request_review approve reject answer edit retry rollback export open_detail remove
    none""".split()
TOPOLOGIES = """solo_run coordinator_team parallel_workers specialist_handoff review_team
    human_agent_board background_teammate remote_teammate unknown""".split()
RUNTIME_ENTITIES = """agent_turn subagent_turn automation_job external_task work_item
    unknown""".split()
ACTION_TYPES = """tool_approval plan_decision teammate_plan_decision structured_input clarification
    permission_grant delegated_permission credential_request artifact_review cost_confirmation
    policy_waiver""".split()
TOOL_STATES = """input-streaming input-available running progress output-available output-error
    cancelled""".split()
TASK_STATES = """draft accepted queued preparing running waiting_input waiting_permission
    waiting_resource blocked paused retrying cancelling cancelled timed_out failed lost completed
    archived stale unknown""".split()

CORRELATION_IDS = """sessionId threadId runId turnId stepId attemptId messageId partId taskId
    parentTaskId agentId subagentId workerId parentSessionId parentThreadId remoteTaskId
    queuedTurnId toolCallId actionId artifactId evidenceId handoffId reviewId channelId processId
    jobId jobItemId traceId spanId runtimeId""".split()

LEGACY_TERMINALS = "done final_done cancelled turn.done turn.final_done turn.cancelled".split()

ALIASES = {
    "message.delta": "model.delta",
    "thinking.delta": "reasoning.delta",
    "runtime.status": "run.status",
    "artifact.snapshot": "artifact.changed",
}

REQUIRED = {
    "facts": "id kind status title createdAt schemaVersion runtimeId sequence".split(),
    "runtime-event": (
        "schemaVersion runtimeId sessionId eventId timestamp sequence type payload".split()
    ),
    "ui": ["type"],
}


def classes(table: str) -> list[str]:
    """Names from `family.{one,two}` and `family.one`, as the specification writes them."""
    found: list[str] = []
    for family, many, one in re.findall(r"([a-z_]+)\.(?:\{([^}]*)\}|([a-z_.]+))", table):
        found += [f"{family}.{name.strip()}" for name in many.split(",")] if many else []
        found += [f"{family}.{one}"] if one else []
    return found


RUNTIME_CLASSES = classes("""
session.{created,updated} thread.{started,updated}
turn.{submitted,started,completed,failed,canceled} run.status
model.{requested,delta,completed,failed} reasoning.{started,delta,summary,completed}
plan.{delta,final} messages.snapshot
tool.{catalog.resolved,started,args,args.delta,progress,output.delta,result,failed}
action.{required,updated,resolved,cancelled,canceled,expired}
permission.{evaluated,requested,resolved,denied} sandbox.{applied,blocked,violation}
hook.{started,progress,completed,failed} policy.changed queue.changed
context.{resolved,attached,failed,compaction.started,compaction.completed,compaction.failed}
history.{compacted,window.loaded,reconstructed,rollback.started,rollback.completed}
artifact.{changed,created,updated,versioned,preview.ready,diff.ready}
artifact.{export.started,export.completed,exported,failed,deleted}
evidence.{changed,exported} review.{requested,verdict,completed}
task.{created,accepted,queued,started,updated,progress,waiting,blocked,paused,resumed,retrying}
task.{cancel_requested,cancelled,timed_out,failed,lost,completed,archived,profile.resolved}
task.{delegated,dependency.updated,attempt.started,attempt.completed,attempt.failed}
subagent.{spawned,started,status,progress,input,completed,failed,closed}
worker.{started,completed,notification} agent.{changed,spawned,completed,handoff}
handoff.{requested,accepted,rejected,completed} team.changed
channel.{connected,disconnected,resumed,message,permission_forwarded,permission_returned}
process.{started,output,input,completed,failed,terminated} command.{started,output,exited}
file.{read,changed} patch.{started,applied,failed} test.{started,completed}
routing.{candidates.resolved,decided,fallback.applied,not_possible,single_candidate}
limit.changed cost.{estimated,recorded} rate_limit.hit quota.{low,blocked}
job.{created,queued,started,progress,item.started,item.completed,item.failed,completed,failed}
job.cancelled output.{spilled,truncated,redacted,expired} state.delta
snapshot.{updated,repaired} stream.{gap.detected,repair.started,repair.completed}
benchmark.{dataset.resolved,configuration.resolved,trial.started,trial.completed,trial.failed}
benchmark.{reward.recorded,comparison.completed} runtime.{warning,error} metrics.changed
""")

UI_CLASSES = classes("""
session.{opened,hydrated,updated,closed} run.{started,status,finished,failed} plan.{delta,final}
text.{delta,final} reasoning.{delta,summary}
tool.{started,args,args.delta,progress,output.delta,result,failed} action.{required,resolved}
queue.changed task.changed agent.{changed,spawned,completed,handoff}
context.{changed,compaction.started,compaction.completed} permission.changed
artifact.{created,updated,preview.ready,version.created,diff.ready,export.started}
artifact.{export.completed,failed,deleted,changed} evidence.changed state.{snapshot,delta}
messages.snapshot diagnostic.changed metric.changed team.changed worker.notification
review.{requested,completed}
""")

KIND_OF_PREFIX = {
    "action": "action",
    "artifact": "draft",
    "context": "context",
    "evidence": "evidence",
    "review": "evidence",
    "model": "model",
    "message": "model",
    "reasoning": "note",
    "permission": "permission",
    "sandbox": "sandbox",
    **dict.fromkeys("tool command patch test file".split(), "tool"),
    **dict.fromkeys("task subagent handoff worker".split(), "handoff"),
}

STATUS_OF_SUFFIX = {
    "required": "blocked",
    **dict.fromkeys("started delta progress".split(), "running"),
    "failed": "failed",
    **dict.fromkeys("result completed resolved".split(), "completed"),
}

VIOLATIONS = """duplicate_event_id tool_result_without_start tool_failed_without_start
    patch_terminal_without_start command_output_without_start command_exited_without_start
    test_completed_without_start action_resolved_without_request
    tool_started_already_active patch_started_already_active command_started_already_active
    test_started_already_active action_required_already_active
    tool_unclosed_at_turn_end patch_unclosed_at_turn_end command_unclosed_at_turn_end
    test_unclosed_at_turn_end action_unresolved_at_turn_end
    execution_after_turn_terminal turn_terminal_repeated action_already_decided
    tool_result_after_denial""".split()

ISSUE_CODES = """schema_mismatch missing_scope_id sequence_gap sequence_violation secret_leak_risk
    large_payload_inline unknown_event_type outcome_mismatch""".split()

UI_OF_RUNTIME_SPINE = {
    # Table 1 of seed 002: what a runtime spine states → what a UI hears.
    "turn.submitted": {"run.status"},
    "turn.started": {"run.started"},
    "turn.completed": {"run.finished"},
    "turn.failed": {"run.failed"},
    "tool.started": {"tool.started"},
    "tool.result": {"tool.result"},
    "tool.failed": {"tool.failed"},
    "permission.evaluated": {"permission.changed"},
    "action.required": {"action.required"},
    "action.resolved": {"action.resolved"},
    "task.created": {"task.changed"},
    "task.attempt.failed": {"task.changed"},
    "task.retrying": {"task.changed"},
    "task.completed": {"task.changed"},
    "task.profile.resolved": {"run.status"},
    "routing.single_candidate": {"run.status"},
    "routing.decided": {"run.status"},
    "evidence.changed": {"evidence.changed"},
    "evidence.exported": {"evidence.changed"},
    "snapshot.updated": {"state.snapshot"},
}

UI_OF_SOURCE_IDEAS = {
    # Table 2 of seed 002: one row an idea; runtime classes that state it → exactly these events.
    "session metadata": {
        "session.created": ["session.opened"],
        "thread.started": ["session.opened"],
        "session.updated": ["session.updated"],
        "thread.updated": ["session.updated"],
        "history.reconstructed": ["session.hydrated", "messages.snapshot"],
    },
    "run start": {"turn.started": ["run.started"]},
    "status or stage": {"run.status": ["run.status"], "model.requested": ["run.status"]},
    "plan": {"plan.delta": ["plan.delta"], "plan.final": ["plan.final"]},
    "answer text": {"model.delta": ["text.delta"], "model.completed": ["text.final"]},
    "reasoning": {
        "reasoning.delta": ["reasoning.delta"],
        "reasoning.summary": ["reasoning.summary"],
    },
    "tool call": {
        name: [name]
        for name in (
            "tool.started",
            "tool.args",
            "tool.args.delta",
            "tool.progress",
            "tool.output.delta",
            "tool.result",
            "tool.failed",
        )
    },
    "approval": {
        "action.required": ["action.required"],
        "action.resolved": ["action.resolved"],
        "action.cancelled": ["action.resolved"],
        "action.canceled": ["action.resolved"],
        "action.expired": ["action.resolved"],
    },
    "queue": {"queue.changed": ["queue.changed"]},
    "background job, subagent, team member": {
        "job.started": ["task.changed"],
        "task.started": ["task.changed"],
        "subagent.started": ["agent.changed"],
        "subagent.status": ["agent.changed"],
    },
    "teammate spawned or completed, worker result": {
        "subagent.spawned": ["agent.spawned"],
        "agent.spawned": ["agent.spawned"],
        "subagent.completed": ["agent.completed"],
        "agent.completed": ["agent.completed"],
        "worker.completed": ["agent.completed"],
        "worker.notification": ["worker.notification"],
    },
    "team": {"team.changed": ["team.changed"]},
    "handoff": {
        "handoff.requested": ["agent.handoff"],
        "handoff.completed": ["agent.handoff"],
        "agent.handoff": ["agent.handoff"],
    },
    "review": {
        "review.requested": ["review.requested"],
        "review.verdict": ["review.completed", "evidence.changed"],
        "review.completed": ["review.completed"],
    },
    "remote agent or background teammate": {
        "channel.connected": ["agent.changed"],
        "agent.changed": ["agent.changed"],
    },
    "context": {"context.resolved": ["context.changed"], "context.attached": ["context.changed"]},
    "compaction": {
        "context.compaction.started": ["context.compaction.started"],
        "context.compaction.completed": ["context.compaction.completed"],
        "history.compacted": ["context.compaction.completed"],
    },
    "permission, sandbox, policy": {
        name: ["permission.changed"]
        for name in (
            "permission.evaluated",
            "permission.requested",
            "permission.resolved",
            "permission.denied",
            "sandbox.applied",
            "sandbox.blocked",
            "sandbox.violation",
            "policy.changed",
        )
    },
    "artifact lifecycle": {
        "artifact.created": ["artifact.created"],
        "artifact.updated": ["artifact.updated"],
        "artifact.preview.ready": ["artifact.preview.ready"],
        "artifact.versioned": ["artifact.version.created"],
        "artifact.diff.ready": ["artifact.diff.ready"],
        "artifact.export.started": ["artifact.export.started"],
        "artifact.export.completed": ["artifact.export.completed"],
        "artifact.failed": ["artifact.failed"],
        "artifact.deleted": ["artifact.deleted"],
        "artifact.changed": ["artifact.changed"],
    },
    "citation, trace, review, replay, verification": {"evidence.changed": ["evidence.changed"]},
    "durable state": {"snapshot.updated": ["state.snapshot"], "state.delta": ["state.delta"]},
    "message history": {
        "messages.snapshot": ["messages.snapshot"],
        "history.window.loaded": ["messages.snapshot"],
    },
    "runtime failure": {"turn.failed": ["run.failed"]},
    "completion, cancellation, interrupt": {
        "turn.completed": ["run.finished"],
        "turn.canceled": ["run.finished"],
    },
    "diagnostics and metrics": {
        "runtime.warning": ["diagnostic.changed"],
        "runtime.error": ["diagnostic.changed"],
        "metrics.changed": ["metric.changed"],
    },
}

CLASSES = list(dict.fromkeys([*RUNTIME_CLASSES, *UI_CLASSES]))
"""Every class of either list, once."""
