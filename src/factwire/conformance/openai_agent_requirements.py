"""What the agent `openai` promises."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_TURN: Final = requirements(
    "facts, Provider; sources, Targets; edge, Runs",
    {
        "runtime.agents.openai.answer": "An answer streams by pieces of one part, and ends with "
        "its whole text.",
        "runtime.agents.openai.reasoning": "Raw reasoning is counted; it is in no fact and in no "
        "answer.",
        "runtime.agents.openai.tools": "A model is told of the toolbox from one table; its calls "
        "are made under the policy, and it hears what came of them.",
        "runtime.agents.openai.parallel": "Calls of one answer that only look run together; what "
        "changes something runs alone.",
        "runtime.agents.openai.bad-calls": "A call that nobody can read fails with a category, and "
        "the model hears why.",
        "runtime.agents.openai.denied": "A denied call is not made; the model hears that it was "
        "denied and why, and the turn goes on.",
        "runtime.agents.openai.usage": "What the endpoint says it took is recorded, and nothing "
        "that it does not say.",
        "runtime.agents.openai.steps": "A model that comes to no end is stopped after its steps.",
        "runtime.agents.openai.cancel": "Cancelling ends the request to the endpoint, and the "
        "tools that run or wait.",
        "runtime.agents.openai.resume": "A call that waits for a person is made after a restart, "
        "and the conversation goes on from there.",
        "runtime.agents.openai.options": "A turn may set other options than the configuration, "
        "and raises no limit by that.",
    },
)

_PAST: Final = requirements(
    "facts, Projection; edge, Runs",
    {
        "runtime.agents.openai.history": "A model is told the earlier turns of its thread, each "
        "call with its result.",
        "runtime.agents.openai.window": "The oldest of a long past is left out, whole calls at a "
        "time, and a fact says so.",
        "runtime.agents.openai.attachments": "Text and images are given to the model; anything "
        "else is refused before it is asked.",
    },
)

_ENDPOINT: Final = requirements(
    "facts, Provider; guarantees, 9 and S13",
    {
        "runtime.agents.openai.failures": "Whatever an endpoint does wrong fails the turn with a "
        "category that never changes, and with a hint.",
        "runtime.agents.openai.interrupted": "An answer that breaks off is a failed turn, never a "
        "short answer.",
        "runtime.agents.openai.retries": "Every refusal for too many requests and every further "
        "attempt is a fact.",
        "runtime.agents.openai.key": "The key is in no fact, log, message or file, and goes to no "
        "other endpoint.",
        "runtime.agents.openai.wire": "Proxies, headers and keys of the environment reach no "
        "endpoint on this machine.",
        "runtime.agents.openai.setup": "Endpoint, model and options come from the configuration "
        "or from flags; a missing extra is named.",
        "runtime.agents.openai.doctor": "The doctor says which model is where, and whether its key "
        "is there.",
    },
)

OPENAI_AGENT_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_TURN, *_PAST, *_ENDPOINT)
