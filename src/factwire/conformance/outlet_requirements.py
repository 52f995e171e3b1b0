"""What the outlets promise to clients of outside protocols."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

OUTLET_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md AI SDK, AG-UI; docs/outlets.md",
    {
        "outlets.names": "An outlet is found by its name.",
        "outlets.bounded": "An outlet keeps what is open, and a fact costs the same at any time.",
        "outlets.round-trip": "Words, calls, questions, order and ends come back as they were.",
        "outlets.hidden-reasoning": "Of reasoning a client gets the summary and no other word.",
        "outlets.notes": "What a protocol has no word for is told beside it.",
        "outlets.hostile": "What pretends to come from an outlet is believed no more than others.",
        "outlets.beside-turns": "A turn that is joined late, and what is none, begins and ends.",
        "outlets.ai-sdk.versions": "A version of the AI SDK gets nothing that it does not know.",
        "outlets.ai-sdk.turns": "A turn is a message, and a request to a model is a step.",
        "outlets.ai-sdk.approvals": "Approvals are asked and answered as far as a version can.",
        "outlets.ai-sdk.ends": "A message ends as its turn did, or was cut off.",
        "outlets.ai-sdk.retraction": "A text that was taken back or retold counts no more.",
        "outlets.ai-sdk.subagents": "A subagent never speaks in the answer.",
        "outlets.ag-ui.rules": "No stream breaks a rule that AG-UI's client verifies.",
        "outlets.ag-ui.turns": "A turn is a run with its prompt, its words and its calls.",
        "outlets.ag-ui.interrupts": "A question ends its run, and its answer starts the next.",
        "outlets.ag-ui.ends": "A run ends as its turn did, or was cut off.",
        "outlets.ag-ui.subagents": "A subagent is told apart, and suspended where its run ends.",
        "outlets.ag-ui.state": "Shared state is told as state, and nothing else is.",
        "outlets.vendors": "The vendors' own clients read what the outlets write.",
        "cli.convert.outlets": "Facts and streams are converted for clients, as lines or events.",
    },
)
