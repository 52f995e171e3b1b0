"""The rules of seed 001: what a runtime provider puts out, and what it is accepted by."""

from typing import Final

from factwire.conformance.seed_rule import Rule, aside, lacking, rules

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
        lacking(
            "A text stream of the AI SDK is model.delta and model.completed.",
            "projection.ai-sdk.round-trip",
            "Messages of the AI SDK are read and written; its live stream is not read.",
        ),
        lacking(
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

RULES_001: Final[tuple[Rule, ...]] = (
    *_OUTPUT,
    *_ADAPTER,
    *_EXECUTION,
    *_SHAPE,
    *_FRAMEWORKS,
    *_ACCEPTANCE,
    *_SLICE,
    *_SUBAGENTS,
)
