"""The rules of seed 002, second half: identity, unknown and missing facts, acceptance."""

from typing import Final

from factwire.conformance.seed_rule import Rule, rules

_IDS: Final = {
    "the session": "facts.ids.list",
    "the thread or conversation": "facts.ids.list",
    "the run": "facts.ids.list",
    "the turn": "facts.ids.list",
    "the runtime": "facts.ids.list facts.shapes.required",
    "the step": "facts.ids.list",
    "the attempt": "facts.ids.list",
    "the message": "facts.ids.list projection.message.key",
    "the content part": "facts.ids.list projection.message.key",
    "the task": "facts.ids.list needs.task",
    "the agent": "facts.ids.list",
    "the subagent": "facts.ids.list needs.subagent",
    "the team, by id or name": "projection.team.changed",
    "the kind of runtime entity": "seed.runtime.shape seed.runtime.entities",
    "the runtime's status and the latest turn's": "seed.runtime.shape",
    "team phase, queue reason and parallelism": "seed.runtime.shape projection.queue",
    "the parent session": "facts.ids.list",
    "the parent thread": "facts.ids.list projection.subagent.threads",
    "the remote task": "facts.ids.list projection.team.remote",
    "the queued turn": "facts.ids.list projection.queue",
    "the action request": "facts.ids.list needs.action",
    "the tool call": "facts.ids.list needs.tool",
    "the artifact": "facts.ids.list needs.artifact",
    "the evidence": "facts.ids.list needs.evidence",
    "evidence pack, replay or review": "needs.review seed.fixtures.refs",
    "the trace": "facts.ids.list seed.evidence.correlation",
}

_IDENTITY: Final = rules(
    "S002-ID",
    "seed 002, identity requirements",
    [
        *((f"A fact can carry {what}.", ids) for what, ids in _IDS.items()),
        (
            "A client's temporary ids are replaced by the runtime's.",
            "projection.message.optimistic projection.select.optimistic",
        ),
    ],
)

_MISSING: Final = rules(
    "S002-MISS",
    "seed 002, unknown and missing facts",
    [
        (
            "An event that lacks fields is kept where it can be inspected.",
            "projection.needs.degraded projection.unknown-class",
        ),
        (
            "It reads unknown, unavailable, stale or blocked.",
            "projection.needs.degraded projection.missing",
        ),
        ("Nothing is guessed from text.", "seed.prose.reworded"),
        ("What is incomplete is never final evidence.", "ui.never-promoted seed.missing.evidence"),
        ("People keep control: a broken answer closes no request.", "seed.missing.control"),
    ],
)

_ACCEPTANCE: Final = rules(
    "S002-ACC",
    "seed 002, acceptance scenarios",
    [
        (
            "Status before the first text is outside the conversation.",
            "projection.scenario.status-before-text",
        ),
        (
            "A tool's artifact id makes a card tied to the call.",
            "projection.scenario.tool-artifact ui.artifact-card",
        ),
        (
            "A final event settles streamed text without doubling.",
            "projection.scenario.final-reconciles",
        ),
        (
            "A request with severity is in capsules and approvals.",
            "projection.scenario.action-severity",
        ),
        ("Missing artifact metadata reads unknown.", "projection.scenario.unknown-artifact"),
        ("An export copies no bytes into messages.", "projection.scenario.export"),
        ("A queued turn makes no prose.", "projection.scenario.queued-turn"),
        ("A subagent is not flattened into the answer.", "projection.scenario.subagent"),
        (
            "A notification is told from a user's message, with refs.",
            "projection.scenario.notification",
        ),
        ("A delegated approval names who asks.", "projection.scenario.delegated-approval"),
        ("A compaction replays no old reasoning.", "projection.scenario.compaction"),
        (
            "Diagnostics are inspectable outside the conversation.",
            "projection.scenario.diagnostics",
        ),
    ],
)

RULES_002_IDENTITY: Final[tuple[Rule, ...]] = (*_IDENTITY, *_MISSING, *_ACCEPTANCE)
