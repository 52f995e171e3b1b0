"""What running agents of SDKs promises, and what observing programs that run them does."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

SOURCE_LIVE_SDK_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "sources.md Targets, Traps",
        {
            "sources.sdk.live.values": "Whatever a program hands over becomes JSON and never "
            "raises.",
            "sources.sdk.live.wrap": "An object of an SDK is an agent; anything else is left "
            "alone.",
            "sources.sdk.live.failures": "What goes wrong at a model is told by category, with a "
            "hint.",
            "sources.sdk.live.stop": "A turn is stopped while it speaks and while it waits, and "
            "the next one goes on.",
            "sources.sdk.live.policy": "A rule of the owner's decides before anybody is asked; "
            "that a tool sounds harmless does not.",
            "sources.sdk.live.again": "What an SDK has forgotten is told it again from the facts.",
            "sources.sdk.live.inputs": "A picture reaches the model; what it cannot take is "
            "refused by name.",
            "sources.openai-agents.live.stream": "A live run tells text, reasoning, tools and "
            "handoffs.",
            "sources.openai-agents.live.approval": "A decision reaches the agent as it was made.",
            "sources.openai-agents.live.continues": "The next turn goes on with the SDK's state.",
            "sources.langgraph.live.stream": "A live graph tells its nodes, text and tools.",
            "sources.langgraph.live.interrupt": "Interrupts at once and one after the other each "
            "go on with their own answer.",
            "sources.langgraph.live.continues": "The next turn goes on from the checkpoint.",
            "sources.langgraph.live.review": "A review of calls is an approval and is answered as "
            "one.",
            "sources.pydantic-ai.live.stream": "A live run tells text, reasoning and tools.",
            "sources.pydantic-ai.live.deferred": "Deferred calls go on with what was decided "
            "about each.",
            "sources.pydantic-ai.live.continues": "The next turn goes on with the SDK's messages.",
        },
    ),
    *requirements(
        "design.md How a fact flows; docs/observe.md",
        {
            "sources.observe.edge": "Facts of an observed program reach an Edge.",
            "sources.observe.redaction": "No secret leaves an observed program.",
            "sources.observe.pydantic-ai": "A run is told the same however it is driven.",
            "sources.observe.langgraph": "A graph is told, and one that goes on is the same turn.",
            "sources.observe.openai-agents": "A run is told whether or not it is streamed.",
            "sources.observe.approvals": "What waits for the program is told, and what it decides.",
            "sources.observe.failures": "A run ends as the program ended it, and raises what it "
            "raised.",
            "sources.observe.threads": "Runs are turns of the thread that is named; a run inside "
            "of a run has its own.",
            "sources.observe.transparent": "A program gets and hears what it would have.",
            "sources.observe.no-streaming": "No model is made to stream to be observed.",
            "sources.observe.bounded": "What does not fit while nothing can be sent is dropped "
            "and counted.",
            "sources.observe.exit": "A program that ends, however, has sent what it saw.",
            "sources.observe.harmless": "A fault of observing is never the program's.",
            "sources.observe.errors": "What cannot be observed is said at once.",
            "sources.observe.light": "Importing factwire, or observing, imports no SDK.",
        },
    ),
)
