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

PROJECTION_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_CONTRACTS,)
