"""The requirements that only the seeds ask for; `tests/conformance/seed_rules.py` has the rules."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

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
