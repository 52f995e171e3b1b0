"""The rules of seed 000: the event envelope, event families, ids, validation and boundary."""

from typing import Final

from factwire.conformance.seed_rule import Rule, aside, rules

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

RULES_000: Final[tuple[Rule, ...]] = (
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
