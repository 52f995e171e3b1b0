"""One behaviour of the contract: an id that tests carry, where it comes from, and a sentence.

Here are those that anyone's stream, screen and agent is held to, and what a conformance run itself
promises.

The requirements that only the seeds ask for; `tests/conformance/seed_rules.py` has the rules.
"""

from typing import Final

import msgspec


class Requirement(msgspec.Struct, frozen=True):
    """`id` is stable, `source` names the page and section, `sentence` says what holds."""

    id: str
    source: str
    sentence: str


def requirements(source: str, sentences: dict[str, str]) -> tuple[Requirement, ...]:
    """The requirements that one source states, from id → sentence."""
    return tuple(Requirement(name, source, sentence) for name, sentence in sentences.items())


STREAM: Final = requirements(
    "facts.md §1 to §3, §5",
    {
        "stream.schema": "Every fact has the fields that it needs, of the right types.",
        "stream.scope-ids": "Every fact carries the ids that its class needs.",
        "stream.ids": "No two facts have the same id.",
        "stream.sequence": "Sequences of a thread rise by one, unless a repair covers the gap.",
        "stream.lifecycle": "Nothing ends that was not begun, nothing is left open or done after "
        "a turn's end.",
        "stream.terminal": "Every turn that begins ends, once, unless it waits for a person.",
        "stream.status": "No fact states an end that its class or what follows contradicts.",
        "stream.approval": "There is no output while a decision is open, and no result after a "
        "denial.",
        "stream.one-turn": "A thread has one active turn.",
        "stream.failure": "A failed turn states its category and a recovery hint.",
        "stream.secrets": "No fact holds a secret.",
        "stream.size": "No fact holds a large value; large values are behind refs.",
        "stream.input": "What a person attaches travels as refs, never as bytes, local paths or "
        "file addresses.",
        "stream.decision": "A request is decided once; a contrary second answer is refused.",
    },
)

SCREEN: Final = requirements(
    "facts.md §4, §5",
    {
        "screen.replay": "Repeated, overlapping and split replay come to the same screen.",
        "screen.first-screen": "A read model restores what a first screen shows, and the stream "
        "goes on from there.",
        "screen.repair": "A stream that was cut is repaired from a read model.",
        "screen.refs": "Every ref that a fact states is on the screen.",
        "screen.nothing-guessed": "The screen states no end that no fact states, and hides no gap.",
        "screen.final-text": "What streamed as a part is its final text, in the same words, once.",
        "screen.stable-ids": "A message or call has one id, in pieces, final and read model.",
        "screen.expected": "A screen shows exactly what a fixture expects.",
        "screen.facts-shown": "Every fact that is given is in the timeline, and every text, call, "
        "request, artifact, task and subagent that facts state is shown.",
        "screen.outcomes": "Every surface shows the outcome of a call, request, task, subagent or "
        "turn that its facts state.",
        "screen.edges": "The graph has every edge that facts state, in whichever form.",
        "screen.times": "A time is shown only if a fact states it.",
        "screen.nothing-left-open": "Nothing of a turn that has ended reads pending, running or "
        "blocked, except what may outlive a turn.",
        "screen.first-answer": "The first answer to a request counts; a contrary one changes "
        "nothing and is remarked on.",
        "screen.prompts": "Every text of an input is shown, and a steer that is delivered replaces "
        "no prompt.",
        "screen.order": "A complete list of facts comes to the same state in any order.",
        "screen.early-snapshots": "A snapshot that arrives before facts it claims to cover hides "
        "none of them.",
        "screen.late-facts": "A stream that starts in the middle does not read whole; a fact from "
        "before its start is shown, or counted as lost.",
        "screen.counts": "Facts received are the facts taken, repeated, late, dropped and held.",
        "screen.recovery": "A read model restores tasks, artifacts and evidence, and no part of a "
        "text as the whole.",
        "screen.child-turns": "A turn of a subagent, job, external task or work item ends that "
        "and not the thread.",
        "screen.one-part": "Pieces and final text are one part, whichever of them carries the ids.",
        "screen.cancelled-work": "A turn that is cancelled ends its open calls and requests on "
        "every surface.",
        "screen.lenient": "Facts without schemaVersion, runtimeId and sequence are shown.",
        "screen.empty-repairs": "A repair that carries nothing settles no gap.",
        "screen.restarts": "Runs and turns that count by themselves are all shown; one without its "
        "head does not read whole.",
        "screen.lost-text": "Text that a snapshot of the messages leaves out is shown, or its loss "
        "is remarked on.",
        "screen.restored-doubts": "What is restored from a read model of a stream that lacks facts "
        "does not read whole.",
        "screen.ui-round-trip": "Facts that become UI events and facts again show the same.",
        "screen.ui-repeats": "Two UI events without ids are two, even with the same content.",
    },
)

PROVIDER: Final = requirements(
    "facts.md §5",
    {
        "provider.manifest": "The manifest contradicts neither the vocabulary nor itself.",
        "provider.text": "A text turn says something and completes.",
        "provider.tool": "A tool turn calls a tool whose big output is behind a ref.",
        "provider.approval": "An approval turn suspends until it is answered, and then goes on.",
        "provider.denial": "What was denied is not done, and the turn still ends.",
        "provider.failure": "An agent whose turn fails states the failure itself.",
        "provider.repair": "A cut stream of the agent is repaired from the read model.",
        "provider.retry": "No second turn is started by a retry.",
        "provider.cancel": "A turn that is cancelled stops.",
        "provider.resume": "A turn that waits for a person goes on after a restart.",
        "provider.refs": "Content behind a ref that the agent states can be fetched.",
        "provider.read-model": "The agent's own read model agrees with its facts.",
    },
)

SUPERVISOR: Final = requirements(
    "hub.md Teams",
    {
        "supervisor.ends": "A supervisor ends its turn by itself, and as completed.",
        "supervisor.structured": "A supervisor decides by structured output, never in prose.",
        "supervisor.one-decision": "A turn of a supervisor ends with one decision.",
        "supervisor.schema": "A decision fits the schema that the turn was given.",
        "supervisor.complete": "A decision says all that its action needs.",
        "supervisor.roster": "Work is given to members of the team with the right role.",
        "supervisor.ids": "A decision names work by the ids that the run has for it.",
        "supervisor.refusal": "A decision that was refused is followed by another one.",
        "supervisor.limits": "Where budget or assignments are used up, nobody is given work.",
        "supervisor.finish": "A run whose work is all approved is finished.",
        "supervisor.restart": "An agent that was made anew goes on in the thread of the run.",
    },
)

ENGINE: Final = requirements(
    "design.md; facts.md §5",
    {
        "conformance.broken": "An agent that breaks one rule fails exactly that requirement.",
        "conformance.reference": "An agent that breaks none passes every requirement.",
        "conformance.supervisor": "A supervisor that breaks one rule fails exactly that one, and "
        "one that breaks none reaches the level.",
        "conformance.raw": "What an agent yields is judged before the runtime repairs or refuses "
        "it.",
        "conformance.levels": "The level reached is the highest without a failure up to it.",
        "conformance.not-applicable": "What an agent declares it cannot do is named, and never "
        "counted as passed.",
        "conformance.prompts": "A minimum without a prompt fails, with an instruction how to "
        "give one.",
        "conformance.coverage": "A report names every requirement of its subject, judged or not.",
        "conformance.time": "Nothing an agent does makes a run hang.",
        "conformance.projectors": "A projection that doubles, loses or guesses is caught.",
        "conformance.reducers": "A reducer or mapping that breaks one rule fails exactly that "
        "requirement, in Python or as a program.",
        "conformance.recorded": "A recorded stream is judged as that of an agent is.",
        "conformance.subjects": "An agent that cannot be loaded is an error with a stable code.",
        "conformance.discreet": "A report repeats no secret, and nothing long.",
        "conformance.own": "Factwire itself conforms.",
        "conformance.report.json": "The report in JSON is what its schema says.",
        "conformance.report.html": "The page loads nothing and runs nothing from facts.",
        "conformance.pytest": "Every requirement is a test of its own in an author's suite.",
        "cli.conformance": "The command names what failed and shows the fact.",
        "cli.conformance.reducer": "A reducer is judged by name or as a program that speaks JSON "
        "lines.",
        "cli.conformance.exit": "The exit code is 0 for conformant, 1 for not, 2 for an error.",
        "cli.conformance.errors": "What cannot be tested is reported in one line with a code.",
    },
)

ENGINE_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *STREAM,
    *SCREEN,
    *PROVIDER,
    *SUPERVISOR,
    *ENGINE,
)


_FIXTURES: Final = requirements(
    "seed 001, provider conformance slice",
    {
        "seed.fixtures.named": "The seven fixtures are there by name, and more of our own.",
        "seed.fixtures.current": "The documents are what their scripts produce.",
        "seed.fixtures.valid": "The facts of every fixture are valid.",
        "seed.fixtures.expected": "A state shows exactly what a fixture expects.",
        "seed.fixtures.first-screen": "A fixture's read model restores the first screen.",
        "seed.fixtures.replay": "Facts of a fixture that come again change nothing.",
        "seed.fixtures.refs": "Every ref that a fixture's facts name is in the state.",
        "seed.fixtures.bite": "A projection that doubles, loses or guesses fails on fixtures.",
        "seed.prose.reworded": "Other words in the same facts change no status, count or kind.",
        "seed.timestamps": "Recorded facts carry ISO timestamps and wire names.",
    },
)

_SCENARIOS: Final = requirements(
    "facts.md §5; seed 002, acceptance scenarios",
    {
        "seed.scenarios.complete": "The acceptance scenarios and provider minimums are all there.",
        "seed.scenarios.exact": "An expectation states one thing, and a difference is reported.",
        "seed.reducers.program": "A program in any language can be held to the same data.",
        "seed.provider.text": "A recorded text turn has life cycle, message and snapshot.",
        "seed.provider.tool": "A recorded tool turn has its big output behind a ref.",
        "seed.provider.approval": "A recorded approval suspends its turn and lets it go on.",
        "seed.provider.failure": "A recorded failure has a category and a hint.",
        "seed.provider.repair": "A read model stands in for what a cut stream lost.",
        "seed.provider.retry": "A repeated submission makes no second turn.",
    },
)

_RULES: Final = requirements(
    "seeds 000 to 003",
    {
        "seed.rules": "Every rule of the seeds is kept by a tested requirement, or says why not.",
        "seed.turn.end-refs": "A turn's end keeps its time and its evidence.",
        "seed.team.lanes": "Handoffs, reviews and notifications are events of lanes, in order.",
        "seed.snapshot.refs": "Refs of a snapshot are kept with it.",
        "seed.boundary.no-components": "No fact and no state has a place for components.",
        "seed.boundary.imports": "Projection imports facts alone, and nothing of any provider.",
        "seed.raw.kept-out": "Fields of a payload that nobody knows do not reach a state.",
        "seed.evidence.correlation": "A ref to evidence names turn, run, task, call and trace.",
        "seed.subagent.correlation": "What a subagent made names the subagent and its task.",
        "seed.runtime.shape": "Entity, status, team phase, counts and limits of a run are kept.",
        "seed.runtime.entities": "A teammate's turn is not the thread's own.",
        "seed.surfaces.text": "Only text facts put words into the conversation, of all classes.",
        "seed.missing.evidence": "A fact without an evidence id makes no evidence.",
        "seed.missing.control": "A broken answer leaves a request open.",
        "seed.parts.exact": "Parts of messages have the fields of their type and no others.",
    },
)

SEED_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_FIXTURES, *_SCENARIOS, *_RULES)
