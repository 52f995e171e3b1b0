"""The rules of seed 002, first half: the adapter boundary, what becomes of facts, projection."""

from typing import Final

from factwire.conformance.seed_rule import Rule, rules

_BOUNDARY: Final = rules(
    "S002-ADP",
    "seed 002, adapter boundary",
    [
        (
            "State is never inferred from prose.",
            "seed.prose.reworded projection.scenario.unknown-artifact",
        ),
        (
            "Source events are normalised into classes of the interface.",
            "ui.complete ui.source-ideas",
        ),
        (
            "Order is kept by sequence where the source has one.",
            "projection.order.hole ui.ids-kept",
        ),
        (
            "Stable ids are attached where there are any.",
            "facts.ids.list facts.ids.lookup ui.ids-kept",
        ),
        (
            "Owner, scope, phase, surface and persistence are filled in as far as they are known.",
            "classification.fill classification.unknown",
        ),
        (
            "Entity, status, latest turn, team phase, queue and concurrency of a run are kept.",
            "seed.runtime.shape projection.queue",
        ),
        (
            "Raw and secret payloads stay out of the state; summaries and refs are kept.",
            "seed.raw.kept-out redaction.nested",
        ),
        ("What is specific to a provider is parsed in one place.", "seed.boundary.imports"),
    ],
)

_PROFILE: Final = rules(
    "S002-PRO",
    "seed 002, agent runtime profile",
    [
        (
            "Events, read models and task snapshots of a runtime are consumed as they are.",
            "projection.read-model.restore ui.agent-runtime-profile",
        ),
        (
            "A projection decides nothing of execution, retries, routing, permission or verdicts.",
            "seed.boundary.imports projection.evidence.reviews projection.action.closers",
        ),
        (
            "Turn facts are run events and the status surface.",
            "ui.agent-runtime-profile projection.runtime.turns",
        ),
        (
            "Tool facts are rows, process and timeline by call id.",
            "ui.agent-runtime-profile projection.tool.states",
        ),
        (
            "Permissions and actions are status and requests by action id.",
            "ui.agent-runtime-profile projection.action.request",
        ),
        (
            "Task facts are capsules, board and timeline by task, run and attempt.",
            "ui.agent-runtime-profile projection.task.attempts projection.team.views",
        ),
        (
            "Profiles and routing are status, model and limits.",
            "ui.agent-runtime-profile projection.metrics.routing projection.metrics.limits",
        ),
        (
            "Evidence is timeline, review, replay and audit.",
            "ui.agent-runtime-profile projection.evidence.items",
        ),
        (
            "Snapshots and read models are hydration, restored tasks and repair.",
            "ui.agent-runtime-profile projection.read-model.restore",
        ),
        ("Correlation ids are kept.", "ui.ids-kept facts.shapes.conversion"),
        (
            "A missing fact reads unknown and is never made up.",
            "projection.missing ui.never-promoted",
        ),
    ],
)

_IDEAS: Final = (
    ("Session or thread metadata", "session.opened, session.updated, session.hydrated"),
    ("The start of a run or turn", "run.started"),
    ("A runtime's status or stage", "run.status"),
    ("A plan that streams or is complete", "plan.delta, plan.final"),
    ("Answer text that streams or is final", "text.delta, text.final"),
    ("Reasoning that streams or is summed up", "reasoning.delta, reasoning.summary"),
    ("A tool's start, input, progress, output and error", "tool.*"),
    ("An approval, interrupt, question or form", "action.required, action.resolved"),
    ("A queued item or a steer", "queue.changed"),
    ("A background job, subagent or member", "task.changed, agent.changed"),
    (
        "A teammate that comes, ends or reports",
        "agent.spawned, agent.completed, worker.notification",
    ),
    ("Roster, board, team and its policy", "team.changed"),
    ("Another owner or specialist", "agent.handoff"),
    ("A review that is asked for or given", "review.requested, review.completed, evidence.changed"),
    ("A remote task or background teammate", "agent.changed, task.changed, artifact.changed"),
    ("Context that is selected, found or missing", "context.changed"),
    ("A compaction", "context.compaction.started, context.compaction.completed"),
    ("Permission, sandbox, policy and risk", "permission.changed"),
    ("The life of an artifact", "artifact.*"),
    ("Citation, trace, review, replay, verification", "evidence.changed"),
    ("State of application or runtime", "state.snapshot, state.delta"),
    ("Repaired or loaded message history", "messages.snapshot"),
    ("A runtime's failure", "run.failed"),
    ("A runtime's completion, cancellation or interrupt", "run.finished"),
    ("Safe diagnostics and metrics", "diagnostic.changed, metric.changed"),
)

_MAPPING: Final = rules(
    "S002-MAP",
    "seed 002, event class mapping",
    [
        (f"{idea} becomes {classes}.", "ui.source-ideas vocabulary.ui-classes")
        for idea, classes in _IDEAS
    ],
)

_PROJECTION: Final = rules(
    "S002-PROJ",
    "seed 002, projection rules",
    [
        ("Text changes answer parts alone.", "projection.surface.text seed.surfaces.text"),
        (
            "Reasoning changes process parts alone.",
            "projection.surface.reasoning projection.reasoning",
        ),
        ("Plans change process and plan review.", "projection.plan"),
        (
            "Tools change process and timeline; whole output is loaded on demand.",
            "projection.tool.states projection.tool.bounded projection.tool.preview",
        ),
        (
            "Actions change attention and requests.",
            "projection.select.attention projection.select.pending",
        ),
        (
            "Queue, tasks and agents change capsules, sessions and team.",
            "projection.queue projection.task.states projection.team.views",
        ),
        (
            "Context and permission are never answer text.",
            "projection.context.items projection.permission.events seed.surfaces.text",
        ),
        (
            "Artifacts change cards, versions, diffs and export.",
            "projection.artifact.life projection.artifact.versions projection.artifact.export",
        ),
        (
            "Evidence changes citations, review and verification.",
            "projection.evidence.items projection.evidence.reviews",
        ),
        (
            "Team facts change roster, board, handoffs, notifications, reviews and transcripts.",
            "projection.team.views projection.team.handoff projection.select.team",
        ),
        (
            "A worker's notification stays a task fact, also on the user's channel.",
            "projection.notification projection.scenario.notification",
        ),
        (
            "The entity of a run tells turns, teammates, jobs, tasks and work items apart.",
            "seed.runtime.entities",
        ),
        (
            "What is final settles content and is not added to it.",
            "projection.text.final projection.scenario.final-reconciles",
        ),
    ],
)

RULES_002: Final[tuple[Rule, ...]] = (*_BOUNDARY, *_PROFILE, *_MAPPING, *_PROJECTION)
