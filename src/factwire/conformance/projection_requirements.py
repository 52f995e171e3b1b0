"""What `factwire.projection` promises."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

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
        "projection.select.optimistic": "A client's own ids are told from confirmed ones.",
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
