"""Every rule of the contracts that Factwire grew from, and the requirements by which it is kept.

Rules are counted as their sources state them, so that none is forgotten; behaviour is claimed and
tested by requirement. One that says nothing to Factwire has a reason instead, and one that does
not wholly hold yet says what is lacking.
"""

from collections.abc import Iterable
from typing import Final

import msgspec


class SeedRule(msgspec.Struct, frozen=True, kw_only=True):
    """`covered_by` are ids of requirements; `aside` is why a rule does not apply here; `gap` is
    what of it does not hold yet.
    """

    id: str
    source: str
    text: str
    covered_by: tuple[str, ...] = ()
    aside: str | None = None
    gap: str | None = None


class RuleRow(msgspec.Struct, frozen=True):
    """One rule before it has a number: its words, and what keeps it."""

    text: str
    covered_by: str = ""
    aside: str | None = None
    gap: str | None = None


def aside(text: str, reason: str) -> RuleRow:
    """A rule that says nothing to Factwire, and why."""
    return RuleRow(text, aside=reason)


def rule_with_gap(text: str, covered_by: str, gap: str) -> RuleRow:
    """A rule that is kept but for something."""
    return RuleRow(text, covered_by, gap=gap)


def rules(
    prefix: str, source: str, rows: Iterable[RuleRow | tuple[str, str]]
) -> tuple[SeedRule, ...]:
    """The rules of one section, numbered in its order; new ones go to the end."""
    return tuple(
        SeedRule(
            id=f"{prefix}-{number:02}",
            source=source,
            text=row.text,
            covered_by=tuple(row.covered_by.split()),
            aside=row.aside,
            gap=row.gap,
        )
        for number, row in enumerate(map(_row, rows), 1)
    )


def _row(row: RuleRow | tuple[str, str]) -> RuleRow:
    return row if isinstance(row, RuleRow) else RuleRow(*row)


_FAMILIES: Final = rules(
    "S000-FAM",
    "seed 000, event classes and families",
    [
        (
            "Facts are what projection, surfaces and evidence consume; assistant text is not.",
            "projection.surface.text projection.scenario.unknown-artifact seed.prose.reworded",
        ),
        ("Every class of the standard list is known.", "vocabulary.runtime-classes"),
        ("The list is open: other classes are taken.", "facts.unknown-classes vocabulary.open"),
        (
            "Session and turn facts make the runtime's status, the timeline and the read model.",
            "projection.runtime.turns projection.timeline.entries projection.read-model.thread",
        ),
        (
            "Model facts make text and reasoning parts, and the runtime's status.",
            "projection.text.final projection.reasoning projection.runtime.phase",
        ),
        (
            "Tool facts make tool groups, timeline entries and graph nodes.",
            "projection.tool.states projection.timeline.entries projection.graph.nodes",
        ),
        (
            "Permission and sandbox facts make requests, diagnostics and a blocked run.",
            (
                "projection.permission.events projection.permission.sandbox "
                "projection.permission.pending projection.permission.denied"
            ),
        ),
        (
            "Artifact and evidence facts make their lanes and the cards in messages.",
            "projection.artifact.card projection.evidence.items",
        ),
        (
            "Action facts make the list of requests and the change from waiting to done.",
            "projection.action.request projection.action.waiting projection.action.closers",
        ),
        (
            "Snapshot facts repair hydration, end staleness and settle what is final.",
            "projection.order.covered projection.hydration.status projection.repair.messages",
        ),
        (
            "Team facts beyond the list carry task, subagent, handoff, review or evidence ids.",
            "needs.task needs.subagent needs.handoff needs.review",
        ),
    ],
)

_ENVELOPE: Final = rules(
    "S000-ENV",
    "seed 000, base event",
    [
        (
            "All facts share one envelope, of which every field is read and written back.",
            "facts.shapes.required facts.shapes.round-trip",
        ),
        ("The id makes a fact idempotent: one that comes twice adds nothing.", "projection.repeat"),
        ("The kind is a coarse category of a closed list.", "vocabulary.words facts.kind-default"),
        (
            "The status of facts becomes the status of the run.",
            "projection.runtime.status facts.status-default",
        ),
        ("The class decides what a fact means.", "vocabulary.runtime-classes classification.rows"),
        (
            "The sequence orders a stream and shows its gaps.",
            "projection.order.hole validation.sequence_gap",
        ),
        ("The time of a fact is an ISO timestamp.", "seed.timestamps validation.timestamp"),
        (
            "A payload is small and structured; big output and raw replies go behind refs.",
            "validation.large_payload_inline spill.fits spill.nothing-lost",
        ),
    ],
)

_LIFE: Final = rules(
    "S000-TURN",
    "seed 000, lifecycle and text events",
    [
        (
            "A submitted turn names its thread and turn, and is pending.",
            "needs.runtime-event-scope runtime.turn.order",
        ),
        (
            "A started turn names its turn, perhaps its run, and is running.",
            "needs.runtime-event-scope projection.runtime.turns",
        ),
        (
            "A completed turn takes the active stream back into an end.",
            "projection.message.turn-end projection.runtime.turns",
        ),
        (
            "A completed turn may say when it ended and which evidence belongs to it.",
            "seed.turn.end-refs",
        ),
        (
            "A failed turn is failed, and says why in a category or a diagnostic.",
            "runtime.turn.failed projection.runtime.status seed.provider.failure",
        ),
        (
            "Increments with the same message id become one part.",
            "projection.message.key projection.text.exact",
        ),
        ("An increment has its text under `delta`.", "facts.text-increments"),
        (
            "A completed text makes the part of the same message final.",
            "projection.text.final projection.scenario.final-reconciles",
        ),
    ],
)

_TOOLS: Final = rules(
    "S000-TOOL",
    "seed 000, tool and action events",
    [
        (
            "A tool fact without a call id is missing_scope_id.",
            "needs.tool validation.missing_scope_id",
        ),
        (
            "A big result goes into refs and not into the payload.",
            "validation.large_payload_inline projection.tool.preview seed.provider.tool",
        ),
        ("A failed tool shows as failed in its message.", "projection.tool.preview"),
        (
            "A failed tool is among the diagnostics.",
            "projection.tool.states projection.tool.diagnostic",
        ),
        ("A failed tool has a stable category.", "projection.tool.states runtime.toolbox.failures"),
        ("An action fact names its action.", "needs.action validation.missing_scope_id"),
        ("A request is blocked until it is answered.", "projection.action.waiting"),
        (
            "A screen never completes a request by itself; a fact or a newer read model does.",
            "projection.action.closers projection.action.absent",
        ),
        ("A resolved request has a stable decision.", "projection.action.decision"),
    ],
)

_REFS: Final = rules(
    "S000-REF",
    "seed 000, artifact and evidence events",
    [
        (
            "An artifact fact names an artifact or refs; it makes card and lane.",
            "needs.artifact projection.artifact.card",
        ),
        (
            "An evidence fact names evidence or refs; it makes a citation.",
            "needs.evidence projection.evidence.items",
        ),
        (
            "A verdict names the review and an evidence ref.",
            "needs.review projection.evidence.reviews",
        ),
    ],
)

_TEAM: Final = rules(
    "S000-TEAM",
    "seed 000, team workbench events",
    [
        (
            "Task facts name the task; they make work items and task nodes.",
            "needs.task projection.team.views projection.graph.nodes",
        ),
        (
            "Subagent facts name subagent and task; they make roster and descent.",
            "needs.subagent projection.team.views projection.subagent.lineage",
        ),
        (
            "Workers are members; without a task that is a diagnostic and reads unavailable.",
            "projection.subagent.lineage",
        ),
        (
            "Handoffs have an id; they make handoff and lane events.",
            "needs.handoff projection.team.handoff",
        ),
        (
            "Reviews have an id and evidence refs; they make review and lane events.",
            "needs.review projection.evidence.reviews seed.team.lanes",
        ),
        (
            "Team facts are never only message text.",
            "projection.teammate projection.scenario.subagent",
        ),
        (
            "Descent that no fact states is remarked on, and not guessed from titles or text.",
            "projection.subagent.lineage projection.missing seed.prose.reworded",
        ),
    ],
)

_SNAPSHOT: Final = rules(
    "S000-SNAP",
    "seed 000, snapshot and repair events",
    [
        (
            "A snapshot repairs gaps and settles the end.",
            "projection.order.covered projection.repair.messages",
        ),
        ("A snapshot completes no tool and no action.", "projection.snapshot.keeps"),
        (
            "A snapshot has a place in the stream.",
            "projection.snapshot.older projection.order.covered",
        ),
        ("A big snapshot is behind refs.", "spill.fits seed.snapshot.refs"),
    ],
)

_VALIDATION: Final = rules(
    "S000-VAL",
    "seed 000, validation",
    [
        ("Missing fields and wrong types are schema_mismatch.", "validation.schema_mismatch"),
        ("Missing scope ids are missing_scope_id.", "validation.missing_scope_id"),
        (
            "Sequences that do not follow are sequence_gap, unless a repair is declared.",
            "validation.sequence_gap fixtures.declared-gaps sequences.repaired",
        ),
        ("Keys that name a secret are secret_leak_risk.", "validation.secret_leak_risk"),
        ("Payloads that are too big are large_payload_inline.", "validation.large_payload_inline"),
    ],
)

_BOUNDARY: Final = rules(
    "S000-BND",
    "seed 000, boundary",
    [
        ("Facts describe no components.", "seed.boundary.no-components"),
        ("Facts are no local log: any stream of them can be replayed.", "projection.law.replay"),
        (
            "Facts hold no secret of a provider.",
            "runtime.turn.secrets redaction.key redaction.value",
        ),
        aside(
            "React components make no facts; they only call back.",
            "Factwire has no components that could; its packages below the servers import no UI.",
        ),
    ],
)

RULES_000: Final[tuple[SeedRule, ...]] = (
    *_FAMILIES,
    *_ENVELOPE,
    *_LIFE,
    *_TOOLS,
    *_REFS,
    *_TEAM,
    *_SNAPSHOT,
    *_VALIDATION,
    *_BOUNDARY,
)


_NO_ADAPTER: Final = "No adapter for it comes with Factwire yet."
_NPM: Final = "It names packages of another ecosystem; Factwire's own are Python."

_OUTPUT: Final = rules(
    "S001-OUT",
    "seed 001, required output",
    [
        (
            "A provider's output is normalised facts, whatever it runs on.",
            "runtime.turn.order runtime.gate.schema runtime.turn.invalid-fact",
        ),
        (
            "Objects of another protocol are never handed to a screen.",
            "seed.raw.kept-out facts.shapes.conversion",
        ),
        (
            "A fact has id, sequence, schema version, correlation ids and a typed payload.",
            "facts.shapes.required facts.ids.list payloads.types",
        ),
        (
            "A thread's read model has status, active turn, requests, calls, diagnostics, outcome.",
            "projection.read-model.thread",
        ),
        (
            "A task's snapshot has objective, status, attempts, dependencies, progress and refs.",
            "projection.read-model.task",
        ),
        (
            "An artifact ref names the artifact; its content is in no message.",
            "projection.artifact.versions projection.scenario.export",
        ),
        (
            "An evidence ref names evidence and keeps the correlation with its run.",
            "seed.evidence.correlation",
        ),
        aside("Types and fixtures come from a package of contracts.", _NPM),
        aside("Clients are tried with a package of runtime clients.", _NPM),
        (
            "A provider knows no user interface and makes no properties of components.",
            "seed.boundary.no-components seed.boundary.imports",
        ),
        (
            "A turn's facts come in the stated order, from submission to snapshot.",
            "runtime.turn.order seed.provider.text",
        ),
    ],
)

_ADAPTER: Final = rules(
    "S001-ADP",
    "seed 001, runtime adapter rules",
    [
        (
            "Native payloads are kept as raw refs at most, without secrets.",
            "seed.raw.kept-out redaction.nested",
        ),
        (
            "Big output is spilled or a ref, and not copied into facts.",
            "spill.fits spill.note runtime.toolbox.big-output",
        ),
        ("Permissions are facts.", "runtime.policy.facts projection.permission.events"),
        ("What a sandbox does is a fact.", "projection.permission.sandbox runtime.toolbox.sandbox"),
        ("Routing is a fact.", "projection.metrics.routing"),
        ("Quotas and limits are facts.", "projection.metrics.limits"),
        ("Cost is a fact.", "projection.metrics.cost"),
        ("Retries are facts.", "runtime.turn.retry projection.task.attempts"),
        (
            "Failures have a class of their own and a category.",
            "runtime.turn.failed runtime.toolbox.failures projection.diagnostics.stated",
        ),
        (
            "Without a fact nothing is guessed; it reads unavailable, or is refused.",
            "projection.missing runtime.gate.schema",
        ),
    ],
)

_EXECUTION: Final = rules(
    "S001-EXE",
    "seed 001, executing runtimes",
    [
        ("An accepted submission is turn.submitted and turn.started.", "runtime.turn.order"),
        ("An agent's message is model.delta and model.completed.", "runtime.recording.turn"),
        (
            "Reasoning and plans are reasoning.* and plan.*.",
            "projection.reasoning projection.plan runtime.agents.demo.surfaces",
        ),
        ("A function call is tool.started, args, result or failed.", "runtime.toolbox.call"),
        (
            "Commands, patches and files are tool, permission and artifact facts.",
            "runtime.toolbox.write runtime.toolbox.patch projection.artifact.file",
        ),
        (
            "An approval is action.required, and action.resolved once it is answered.",
            "runtime.approval.allowed runtime.toolbox.approval",
        ),
        (
            "A block or a denial is sandbox.blocked, permission.denied or a warning.",
            "runtime.toolbox.denied projection.permission.sandbox needs.reason-code",
        ),
        (
            "A compaction is a compacted history, attached context and a snapshot.",
            "projection.context.compaction projection.context.items",
        ),
        (
            "A repaired session is a snapshot, a cursor of the read model and evidence.",
            "projection.read-model.restore runtime.recovery",
        ),
        (
            "A native item is at most a diagnostic's raw ref.",
            "projection.diagnostics.stated seed.raw.kept-out",
        ),
    ],
)

_SHAPE: Final = rules(
    "S001-API",
    "seed 001, provider adapter shape",
    [
        ("Starting a turn gives a stream of facts.", "runtime.turn.order"),
        ("Cancelling a turn gives a fact.", "runtime.turn.cancel"),
        ("Answering an action gives a fact.", "runtime.approval.allowed"),
        (
            "Reading a thread gives its read model.",
            "projection.read-model.thread seed.provider.repair",
        ),
        (
            "A model's or framework's objects stay behind the adapter.",
            "seed.raw.kept-out seed.boundary.imports",
        ),
    ],
)

_FRAMEWORKS: Final = rules(
    "S001-SRC",
    "seed 001, external frameworks",
    [
        rule_with_gap(
            "A text stream of the AI SDK is model.delta and model.completed.",
            "projection.ai-sdk.round-trip",
            "Messages of the AI SDK are read and written; its live stream is not read.",
        ),
        rule_with_gap(
            "Tool parts of the AI SDK are tool facts.",
            "projection.ai-sdk.round-trip",
            "Their ids and states are kept in messages; no facts are made of them.",
        ),
        aside(
            "A handoff of OpenAI Agents is subagent, task, channel facts and an edge.", _NO_ADAPTER
        ),
        aside("A node of LangGraph is task and run facts, and a node of the graph.", _NO_ADAPTER),
        aside(
            "A result of MCP is tool.result with an output, artifact or evidence ref.", _NO_ADAPTER
        ),
        (
            "An item of a local turn is facts, a read model and a raw ref.",
            "runtime.agents.shell runtime.toolbox.call",
        ),
        (
            "No state is parsed from the text of a model.",
            "seed.prose.reworded projection.scenario.unknown-artifact",
        ),
    ],
)

_ACCEPTANCE: Final = rules(
    "S001-ACC",
    "seed 001, minimal acceptance",
    [
        ("A text turn has life cycle, message and snapshot.", "seed.provider.text"),
        ("A tool turn has the call's life cycle; big output is a ref.", "seed.provider.tool"),
        (
            "An approval turn suspends, and resumes once answered.",
            "seed.provider.approval runtime.approval.allowed",
        ),
        ("A failed turn has a category and a hint.", "seed.provider.failure"),
        (
            "After a cut the read model repairs the state.",
            "seed.provider.repair projection.repair.read-model",
        ),
    ],
)

_SLICE: Final = rules(
    "S001-FIX",
    "seed 001, provider conformance slice",
    [
        *(
            (f"There is a fixture {name}.", "seed.fixtures.named")
            for name in (
                "text-basic",
                "tool-success",
                "tool-failure",
                "hitl-action",
                "artifact-evidence",
                "stream-repair",
                "subagent-handoff",
            )
        ),
        ("The facts of a fixture are valid.", "seed.fixtures.valid"),
        ("Its read model restores the first screen.", "seed.fixtures.first-screen"),
        ("Replay repeats nothing.", "seed.fixtures.replay"),
        ("Replay guesses nothing.", "seed.prose.reworded"),
        ("Replay loses no ref.", "seed.fixtures.refs"),
    ],
)

_SUBAGENTS: Final = rules(
    "S001-SUB",
    "seed 001, subagent provider",
    [
        (
            "Several agents at work are subagent, task, channel and handoff facts.",
            "runtime.agents.demo.team projection.subagent.life projection.team.handoff",
        ),
        (
            "Artifacts and evidence of a subagent keep its id and its task's.",
            "seed.subagent.correlation",
        ),
        ("Prose of the assistant is no substitute for these facts.", "projection.teammate"),
    ],
)

RULES_001: Final[tuple[SeedRule, ...]] = (
    *_OUTPUT,
    *_ADAPTER,
    *_EXECUTION,
    *_SHAPE,
    *_FRAMEWORKS,
    *_ACCEPTANCE,
    *_SLICE,
    *_SUBAGENTS,
)


_ADAPTER_BOUNDARY: Final = rules(
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

RULES_002: Final[tuple[SeedRule, ...]] = (*_ADAPTER_BOUNDARY, *_PROFILE, *_MAPPING, *_PROJECTION)


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

_PROJECTION_ACCEPTANCE: Final = rules(
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

RULES_002_IDENTITY: Final[tuple[SeedRule, ...]] = (*_IDENTITY, *_MISSING, *_PROJECTION_ACCEPTANCE)


_TYPES: Final = rules(
    "S003-PART",
    "seed 003, part types and model",
    [
        (
            "Parts are readable content and references; all state has owners of its own.",
            "seed.parts.exact projection.diagnostics.apart",
        ),
        (
            "Text comes from input, increments and final text; the final one settles it.",
            "projection.surface.text projection.text.final projection.message.user",
        ),
        (
            "Reasoning is its summary; the raw chain of thought is not shown.",
            "projection.reasoning projection.surface.reasoning",
        ),
        (
            "A tool is a preview with a ref, and no copy of its output.",
            "projection.tool.preview seed.provider.tool",
        ),
        ("An artifact is a card that refers to it.", "projection.artifact.card"),
        ("Evidence is a citation that refers to it.", "projection.evidence.items"),
        ("A diagnostic is a way to it, and none of its words.", "projection.diagnostics.apart"),
        *(
            (f"A part of type {name} has the fields {fields}.", "seed.parts.exact")
            for name, fields in (
                ("text", "partId, messageId, text, state"),
                ("reasoning", "partId, summary, encryptedRef"),
                ("tool-preview", "partId, toolCallId, outputRef, status"),
                ("artifact-card", "partId, artifactId, versionId"),
                ("evidence-citation", "partId, evidenceId, verdict"),
                ("diagnostic-ref", "partId, diagnosticId"),
            )
        ),
        (
            "Messages can be turned into those of the AI SDK.",
            "projection.ai-sdk.valid projection.ai-sdk.round-trip",
        ),
    ],
)

_FINAL: Final = rules(
    "S003-FIN",
    "seed 003, streaming and final content",
    [
        (
            "Increments, then the final text: one part that ends.",
            "projection.text.final projection.scenario.final-reconciles",
        ),
        (
            "A final text is never added to what streamed.",
            "projection.text.final projection.text.exact",
        ),
        (
            "It confirms, mends or replaces the part of the same message and part id.",
            "projection.message.key projection.text.final",
        ),
    ],
)

_INPUT: Final = rules(
    "S003-IN",
    "seed 003, multimodal input",
    [
        ("Text is a text part of the user's.", "inputs.text projection.message.user"),
        (
            "Images, sound, film and documents are refs, never bytes.",
            "inputs.assets inputs.refused",
        ),
        ("Objects of the business are refs that the application resolves.", "inputs.workspace"),
        (
            "Sensitive attachments are capability refs; no path and no secret.",
            "inputs.capabilities inputs.refused",
        ),
    ],
)

_WORKERS: Final = rules(
    "S003-WRK",
    "seed 003, worker notifications",
    [
        (
            "A notification on the user's channel is no message of the user's.",
            "projection.notification projection.scenario.notification",
        ),
        (
            "It is on the team's surface, with refs to result and transcript.",
            "projection.scenario.notification",
        ),
    ],
)

_PROHIBITED: Final = rules(
    "S003-NOT",
    "seed 003, prohibitions",
    [
        (
            "Kinds, success and decisions are not parsed from text.",
            "seed.prose.reworded projection.scenario.unknown-artifact",
        ),
        (
            "Increments of reasoning are not the answer.",
            "projection.surface.reasoning seed.surfaces.text",
        ),
        (
            "Diagnostics and raw payloads are not in the transcript.",
            "projection.diagnostics.apart seed.surfaces.text",
        ),
        ("Parts hold no collapse, focus or selected tab.", "seed.parts.exact"),
    ],
)

RULES_003: Final[tuple[SeedRule, ...]] = (*_TYPES, *_FINAL, *_INPUT, *_WORKERS, *_PROHIBITED)

SEED_RULES: Final[tuple[SeedRule, ...]] = (
    *RULES_000,
    *RULES_001,
    *RULES_002,
    *RULES_002_IDENTITY,
    *RULES_003,
)
