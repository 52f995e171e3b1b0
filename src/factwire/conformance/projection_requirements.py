"""What `factwire.projection` promises: how facts become a state, its rules, laws and surfaces."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

_CONTRACTS: Final = requirements(
    "docs/schemas.md",
    {
        "projection.schemas.json": "States and changes are exported as JSON Schema that every "
        "snapshot and every change satisfies.",
        "projection.schemas.views": "Read models and what selectors give are exported as JSON "
        "Schema, by name.",
        "projection.schemas.exact": "The schemas take exactly the states that are read and the "
        "operations that can be carried out.",
        "projection.schemas.typescript": "States, changes, read models and selections are exported "
        "as TypeScript declarations, beside those of the facts.",
        "projection.diagnostics.codes": "What a projection remarks itself has a listed code.",
        "projection.ai-sdk.valid": "The AI SDK finds the messages of a state valid, once there are "
        "any.",
        "projection.ai-sdk.only-refs": "So is a user's message that has no text, only references.",
        "projection.ai-sdk.round-trip": "As AI SDK messages and back, text, order and the ids of "
        "tools, artifacts and evidence stay.",
    },
)

_SELECTORS: Final = requirements(
    "facts.md Projection; seed 002",
    {
        "projection.select.conversation": "The conversation is user and assistant alone.",
        "projection.select.pending": "Open actions come by severity, then age, with who asks.",
        "projection.select.attention": "Input first, then plans, then failures, then what runs.",
        "projection.select.process": "The active process is what is open in the active turn.",
        "projection.select.timeline": "The timeline comes in pages that leave nothing out.",
        "projection.select.graph": "The graph comes parents first, whole or from one node.",
        "projection.select.team": "A team has members, a board by columns, and its requests.",
        "projection.select.optimistic": "A client's own ids are distinguished from confirmed ones.",
    },
)

_READ_MODELS: Final = requirements(
    "facts.md Projection (read models)",
    {
        "projection.read-model.thread": "A thread read model says what waits, runs and failed.",
        "projection.read-model.task": "A task snapshot has attempts, dependencies and steps.",
        "projection.read-model.session": "A session snapshot joins its threads.",
        "projection.read-model.restore": "A first screen comes from a read model alone.",
        "projection.read-model.invalid": "What is no read model is refused with its reason.",
    },
)

PROJECTION_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_CONTRACTS,
    *_SELECTORS,
    *_READ_MODELS,
)


_RULES: Final = requirements(
    "spec facts §4, rules",
    {
        "projection.repeat": "A fact that comes twice changes nothing but its count.",
        "projection.conflict": "Another body under a known id, or another fact in a taken place, "
        "is remarked on; the first one counts.",
        "projection.order.hole": "Order is the sequence; what comes after a hole waits, and the "
        "state is stale until the hole is filled.",
        "projection.order.covered": "A snapshot covers what it carries of the holes before it, and "
        "nothing after it.",
        "projection.order.given-up": "Past the window a hole is given up: what waited is shown, "
        "and nothing is final until a repair.",
        "projection.order.threads": "Facts of unrelated threads are left out.",
        "projection.text.exact": "Deltas concatenate exactly.",
        "projection.text.final": "The final text replaces the streamed one in the same part.",
        "projection.snapshot.older": "A snapshot or read model older than the state is left aside.",
        "projection.snapshot.keeps": "A snapshot completes and erases neither tool nor action.",
        "projection.action.closers": "Only a closing fact or the end of its turn closes an action.",
        "projection.action.absent": "So does a newer read model that no longer lists it.",
        "projection.needs.degraded": "A fact without what its class needs is degraded, and never "
        "completed.",
        "projection.surface.text": "Only model text and the user's input become text.",
        "projection.surface.reasoning": "A raw chain of thought is nowhere in a state.",
        "projection.notification": "A worker's notification is no message.",
        "projection.teammate": "A subagent or a handoff is never part of the assistant.",
        "projection.state-delta": "The shared state is patched as RFC 6902 says.",
        "projection.state-delta.failed": "A patch that fails changes nothing and leaves the state "
        "stale until a whole one comes.",
        "projection.state-delta.bounded": "Patches can neither nest nor multiply the shared state "
        "without bound.",
        "projection.unknown-class": "An unknown class is an entry and a diagnostic, nothing else.",
        "projection.missing": "What no fact says reads unknown.",
        "projection.wrong-types": "A payload field of a wrong type counts as absent.",
        "projection.order.complete": "The facts of a complete input come to the same state in any "
        "order; what follows a hole is shown, and the hole listed.",
        "projection.order.runs": "Runs that count by themselves are ordered each by itself, and "
        "follow each other as their turns began.",
        "projection.order.early-snapshot": "A snapshot hides no fact that comes after it: it is "
        "shown, or the state is not live.",
        "projection.order.starts-late": "A stream that starts in the middle is marked as such.",
        "projection.order.rebuilt": "A fact that comes late is taken in its place as long as the "
        "facts since are remembered, and counted after that.",
        "projection.hydration.counts": "Facts received are those taken, repeated, late, dropped "
        "and held, after every fact.",
    },
)

_LAWS: Final = (
    *requirements(
        "spec facts §4, rule 4",
        {
            "projection.law.replay": "Batch, one by one, in chunks and from a checkpoint, facts "
            "come to the same state by the same changes.",
            "projection.law.changes": "Changes applied to the last snapshot give the next exactly.",
            "projection.law.duplicates": "Duplicates change nothing but their count, wherever "
            "they come.",
            "projection.law.order": "Any order without a lasting hole gives the state of the right "
            "order.",
            "projection.law.garbage": "Every fact that a decoder lets through can be projected.",
            "projection.law.compaction": "What compaction leaves of a log projects as the whole "
            "log, but for counts and names of facts.",
            "projection.state.decodes": "Every snapshot decodes strictly, there and back.",
            "projection.cost.constant": "An increment costs the same after any history.",
            "projection.bounded": "Lists that only tell what happened are bounded.",
        },
    ),
    *requirements(
        "guarantees R5",
        {
            "projection.law.volume": "Disorder and repeats among 100,000 facts leave no trace.",
        },
    ),
)

_CHANGES: Final = requirements(
    "docs/projection.md",
    {
        "projection.changes.small": "A delta is sent as one append, and a repeat as its count.",
        "projection.changes.folded": "Several changes can be sent as one.",
        "projection.changes.own": "What was sent or taken does not change with the state.",
        "projection.changes.wire": "Changes survive the wire.",
        "projection.checkpoint.exact": "A restored projection goes on as if it had never stopped.",
        "projection.checkpoint.refused": "What is no checkpoint is refused by name.",
        "projection.json-patch.standard": "JSON Patch is carried out or refused as RFC 6902 says.",
        "projection.json-patch.pointers": "Every key can be pointed at, as RFC 6901 says.",
        "projection.json-patch.whole": "A patch is carried out whole or not at all.",
        "projection.json-patch.append": "Append adds to the end of a text.",
    },
)

_CONVERSATION: Final = requirements(
    "seed 003",
    {
        "projection.message.key": "A part is known by turn, message and part id, wherever a fact "
        "carries them.",
        "projection.message.parts": "Parts stand in the order of their first facts.",
        "projection.message.collision": "An id that another kind of part has takes nothing over.",
        "projection.message.reopened": "Text behind a final text opens its message again.",
        "projection.message.turn-end": "The end of a turn closes what it left open.",
        "projection.message.user": "The user's input is a message of theirs, attachments as refs.",
        "projection.message.optimistic": "A client's own id is replaced by the runtime's.",
        "projection.message.superseded": "A superseded message is taken back.",
        "projection.message.whole": "A delta may tell the whole text so far.",
        "projection.reasoning": "Reasoning is counted, and shown by its summary.",
        "projection.plan": "A plan is no text, and knows what was decided about it.",
        "projection.diagnostics.stated": "A diagnostic is kept as stated.",
        "projection.diagnostics.apart": "A message holds only a way to a diagnostic.",
    },
)

_SURFACES: Final = requirements(
    "spec facts §4, state roots",
    {
        "projection.runtime.status": "Of all that holds at once the strongest status shows.",
        "projection.runtime.turns": "Only a started turn is active, until its own end.",
        "projection.runtime.submitted": "A thread with a submitted turn runs, in phase submitted.",
        "projection.runtime.phase": "What ends inside a turn does not end the run.",
        "projection.tool.states": "The state of a call follows from its own facts.",
        "projection.tool.preview": "A call stands once in its message, with its state.",
        "projection.tool.parallel": "Parallel calls are kept apart.",
        "projection.tool.diagnostic": "A failed call is among the diagnostics; a stopped one is "
        "not.",
        "projection.tool.bounded": "Input and output are shown as far as there is room.",
        "projection.tool.turn-end": "A cancelled turn cancels its open calls; after any other end "
        "they read unknown.",
        "projection.action.request": "A request shows who asks, and what for.",
        "projection.action.decision": "A decision and its application are two things.",
        "projection.action.waiting": "A thread waits until its last open action is closed.",
        "projection.artifact.life": "An artifact's status follows its facts.",
        "projection.artifact.versions": "Versions are kept once each, by refs.",
        "projection.artifact.export": "An export has a state of its own.",
        "projection.artifact.card": "A card stands once in each message that brought a version.",
        "projection.artifact.file": "A changed file is an artifact and a file.",
        "projection.evidence.items": "Evidence is described as stated, and cited once.",
        "projection.evidence.reviews": "A verdict is only what a fact says.",
        "projection.evidence.trials": "Trials of a benchmark are known by id.",
        "projection.task.states": "A class puts a task into its state.",
        "projection.task.attempts": "Every attempt is kept with how it ended.",
        "projection.task.dependencies": "A task is blocked by what is not done.",
        "projection.task.refs": "Refs and people of a task add up.",
        "projection.job": "The items of a job are counted.",
        "projection.subagent.life": "A class puts a subagent into its state.",
        "projection.subagent.lineage": "Descent is what facts state; none is made up.",
        "projection.subagent.threads": "A child's thread is followed in its own order.",
        "projection.team.views": "Roster and board say what subagents and tasks say.",
        "projection.team.handoff": "A handoff changes the owner only when it is taken.",
        "projection.team.changed": "The team is described as stated.",
        "projection.team.remote": "A remote member is known by its channel.",
        "projection.queue": "Turns that wait come, go and move, and are no messages.",
        "projection.context.items": "What the model was given is listed.",
        "projection.context.compaction": "A compaction is one boundary with a summary.",
        "projection.permission.events": "Decisions are listed and counted.",
        "projection.permission.sandbox": "What the sandbox stopped blocks the run.",
        "projection.permission.policy": "Of a policy, a sandbox and a task's profile the known "
        "fields are kept.",
        "projection.permission.pending": "A permission that is asked for is pending and blocks the "
        "run; it opens no action.",
        "projection.permission.denied": "A denial is a diagnostic and blocks the run until it goes "
        "on.",
        "projection.metrics.cost": "Recorded cost adds up; what no number can hold is left out.",
        "projection.metrics.limits": "Limits are known by name, and hits counted.",
        "projection.metrics.routing": "A routing decision names the model.",
        "projection.metrics.values": "Figures are kept as they were stated last; a text only where "
        "its name says what it is.",
        "projection.process.life": "A program runs and ends as its facts say.",
        "projection.process.output": "Output is shown with its place in the log.",
        "projection.hook": "A hook runs, and a failed one is remarked on.",
        "projection.coding": "Patches and test runs end as they say themselves.",
        "projection.timeline.entries": "The facts of one thing are one entry.",
        "projection.timeline.order": "Entries stand in the order in which they began.",
        "projection.graph.nodes": "What hangs on what follows from ids.",
        "projection.graph.sound": "Every edge and parent is a node, and no node its own ancestor.",
        "projection.hydration.status": "The status tells whether a state shows all there is.",
        "projection.hydration.gaps": "Missing sequences are listed, up to a bound.",
        "projection.hydration.reported": "A reported gap lasts until its repair is reported.",
        "projection.hydration.session": "The session is known from the first fact.",
        "projection.hydration.agent-sessions": "What an outside agent calls the thread is kept.",
        "projection.repair.messages": "A snapshot replaces messages and keeps what else is known.",
        "projection.repair.window": "Loaded older messages go before the others.",
        "projection.repair.window-of-ui": "Messages of a UI that state neither that they are all "
        "there are nor how far they reach take nothing back and close no gap.",
        "projection.repair.rollback": "A rollback takes back what was said after its place.",
        "projection.repair.changes": "What waits for a repair is found wherever it moved.",
        "projection.repair.read-model": "A newer read model is taken at its word on every surface; "
        "what was under way and it does not speak of is stale.",
        "projection.repair.same": "A state's own read model changes nothing in it.",
        "projection.repair.stale-text": "A stale text goes on in its place, and only the whole of "
        "it makes it good.",
        "projection.repair.goes-on": "A repaired projection goes on, restored or not, by the same "
        "changes.",
        "projection.turn-owner": "A turn, failure or end that carries a subagent, a job or a task "
        "elsewhere ends that, and changes nothing of the thread's own run.",
        "projection.turn-failures": "Why a turn failed is kept on the turn, in its entry and among "
        "the incidents of the read model, whatever follows.",
        "projection.task-refs": "Outputs, progress and evidence of a task are kept.",
        "projection.part-ids": "The end of a text replaces what was streamed whichever side "
        "carries ids; an end that could mean several open parts is kept apart and remarked.",
        "projection.steers": "A steer that was delivered is a message of its own and never another "
        "wording of the prompt; every text of an input is kept.",
        "projection.lineage-forms": "Every form in which a fact states its lineage gives the same "
        "parents.",
        "projection.refs.timeline": "A ref of any fact is in the entry of its fact.",
        "projection.refs.surfaces": "A ref is on the surface of the thing it belongs to.",
        "projection.refs.makers": "An artifact keeps the task and subagent any fact of it names.",
        "projection.diff.inline": "An inline diff is shown; past the limit it is cut at a line.",
        "projection.read-model.recovery": "A read model of any prefix and the rest of the stream "
        "come to the same screen, with every surface that a read model carries.",
        "projection.read-model.whole-text": "A restored text is whole only where its length and "
        "digest match; any other is stale until the whole text comes.",
        "projection.read-model.extensions": "Fields of a read model that are not known survive.",
        "projection.read-model.bounded": "A read model is bounded, and counts the messages that it "
        "leaves out.",
        "projection.forked-history": "What a fork has from its parent is shown as the parent's, "
        "and nothing in it goes on.",
    },
)

_SCENARIOS: Final = requirements(
    "seed 002, acceptance scenarios",
    {
        "projection.scenario.status-before-text": "Status before text is outside the conversation.",
        "projection.scenario.tool-artifact": "A tool's artifact gets a card linked to the call.",
        "projection.scenario.final-reconciles": "A final fact reconciles without doubling.",
        "projection.scenario.action-severity": "A request shows its severity with its task.",
        "projection.scenario.unknown-artifact": "Missing metadata is not guessed from prose.",
        "projection.scenario.export": "An export copies no content.",
        "projection.scenario.queued-turn": "A queued turn makes no prose.",
        "projection.scenario.subagent": "A subagent is not flattened into the answer.",
        "projection.scenario.notification": "A notification is distinguished from a user's "
        "message.",
        "projection.scenario.delegated-approval": "A delegated approval names who asks.",
        "projection.scenario.compaction": "A compaction repeats no old reasoning.",
        "projection.scenario.diagnostics": "Diagnostics stay inspectable outside the conversation.",
    },
)

_OUTCOMES: Final = requirements(
    "spec facts §4, status and times",
    {
        "projection.outcome.tool": "A result that states a failure is a failure on every surface.",
        "projection.outcome.turn": "A turn is shown no better than its class or status says.",
        "projection.outcome.status": "A stated status is shown where it says more than the class.",
        "projection.outcome.turn-end": "A finished turn leaves nothing pending, running or "
        "blocked, but for what outlives a turn.",
        "projection.outcome.cancel": "A cancelled call is cancelled everywhere, and its approval "
        "is withdrawn.",
        "projection.action.first-answer": "The first answer to an action counts; another one is "
        "remarked on.",
        "projection.times": "Only a fact of the beginning says when something began.",
        "projection.evidence-of": "The evidence that a call, text or turn names is kept with it.",
        "projection.child-lineage": "A turn that only lineage marks as a child's ends the child, "
        "and what the child says and does is shown as the child's.",
        "projection.early-children": "Facts of a child thread that come before the fact that names "
        "the thread are taken once it comes.",
        "projection.texts-without-ids": "Two whole texts without ids are two texts.",
        "projection.own-task-turn": "A turn that began while none of the thread ran is the "
        "thread's own, though its facts name a task above it.",
    },
)

_LOSS: Final = requirements(
    "spec facts §4, rules 2 and 13",
    {
        "projection.loss.visible": "What is lost shows: a repair settles only what it carries, a "
        "run or turn without its head starts late, and a fact whose place is taken leaves the "
        "state stale.",
        "projection.loss.restored": "A read model passes on every doubt, what is over and what "
        "failed, and never settles texts that it does not carry.",
    },
)

_COUNTS: Final = requirements(
    "spec facts §1, sequence",
    {
        "projection.order.beside-runs": "Where runs count by themselves, facts of no run are all "
        "taken in their places, whether they count beside the runs or along with them.",
        "projection.order.main-thread": "A complete input is about the thread that is above the "
        "others, whichever fact comes first; a live stream that a child begins is in doubt as soon "
        "as facts of its parent are left out.",
    },
)

_ENDS: Final = requirements(
    "spec facts §4, read models",
    {
        "projection.read-model.cancelled-by": "The read model of a thread says who cancelled the "
        "last turn, and a state that is restored from it shows it.",
    },
)

_COSTS: Final = requirements(
    "design, how a fact flows",
    {
        "projection.cost.lists": "A fact that adds to a list costs the same however long the list "
        "is, and its changes carry only what is new.",
    },
)

PROJECTION_RULE_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_RULES,
    *_LAWS,
    *_CHANGES,
    *_CONVERSATION,
    *_SURFACES,
    *_SCENARIOS,
    *_OUTCOMES,
    *_LOSS,
    *_COSTS,
    *_COUNTS,
    *_ENDS,
)
