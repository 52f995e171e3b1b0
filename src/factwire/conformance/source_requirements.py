"""What the adapters of outside agents promise, recorded and live, and the outlets to clients."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

SOURCE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets, Traps",
    {
        "sources.recordings.valid": "A recorded stream becomes valid facts, every turn ended.",
        "sources.recordings.screen": "A recorded stream shows exactly what was reviewed.",
        "sources.recordings.same-ids": "A stream that is converted twice gives the same facts.",
        "sources.recordings.hostile": "Odd items give valid facts, and never an error.",
        "sources.recordings.cut": "A stream cut at any line is valid and says that it was cut.",
        "sources.ai-sdk.resume": "A resumed AI SDK stream tells nothing twice.",
        "sources.ai-sdk.reset-step": "A reset step takes back what it said.",
        "sources.ai-sdk.approvals": "AI SDK approvals are asked, answered and followed.",
        "sources.ai-sdk.ends": "An AI SDK stream ends as it says, or was cut off.",
        "sources.ai-sdk.parts": "Files, sources and data are things, never text.",
        "sources.ag-ui.interrupts": "An AG-UI interrupt asks a person and ends its run.",
        "sources.ag-ui.subagents": "An AG-UI subagent speaks for itself.",
        "sources.ag-ui.state": "AG-UI state deltas patch the shared state.",
        "sources.ag-ui.ends": "An AG-UI run ends as it says, or was cut off.",
        "sources.diffs": "A changed file has a unified diff, in whatever form its agent states it.",
    },
)


SOURCE_LIVE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets",
    {
        "sources.live.same-facts": "A live turn becomes what its recording would become.",
        "sources.live.names": "Names that a source uses again are new on the thread.",
        "sources.live.decisions": "A decision reaches the agent that asked, as it was made.",
        "sources.live.cut": "An agent that dies or goes silent fails its turn, and says why.",
        "sources.live.cancel": "A cancelled turn leaves no program and nothing open.",
        "sources.live.entry-points": "Every agent and wrapper of the package loads without an SDK, "
        "with a sound manifest.",
        "sources.live.loopback": "With the settings that its page names, an agent reaches for "
        "nothing but its model.",
        "sources.live.command-line": "A real agent is run, answered from another terminal and "
        "continued by the command alone, here and over an Edge.",
        "sources.live.big": "What is too big for a fact leaves a live agent as a ref, redacted.",
        "sources.live.raw": "What is not known is named, and kept only on request, redacted.",
        "sources.live.read-thread": "Every live agent answers for its thread from the facts, under "
        "its own session.",
    },
)


CLAUDE_CODE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Claude Code",
    {
        "sources.claude-code.parts": "Each text of an API message is a part, streamed or not.",
        "sources.claude-code.turns": "Each result ends one turn; a process may hold several.",
        "sources.claude-code.ends": "A result ends as it says: done, failed, or stopped.",
        "sources.claude-code.background": "A background subagent outlives its turn, unmixed.",
        "sources.claude-code.approvals": "Questions are closed by answer, withdrawal or end.",
        "sources.claude-code.retraction": "What a later line takes back is taken back.",
        "sources.claude-code.retry": "What a repeated request had streamed is taken back.",
        "sources.claude-code.results": "A tool result says if it ran, and names files and refs.",
        "sources.claude-code.remarks": "Limits, hooks, errors and remarks never become text.",
        "sources.claude-code.queue": "A prompt in a running turn waits for the next.",
        "sources.claude-code.usage": "A turn has its own share of a session's cost, by model.",
        "sources.claude-code.live.session": "A turn goes on with the session of the last.",
        "sources.claude-code.live.asks": "People decide what it asks, seeing exactly what is done.",
        "sources.claude-code.live.questions": "Questions and plans are answered in its form.",
        "sources.claude-code.live.rules": "A rule holds whatever its own settings would allow.",
        "sources.claude-code.live.always": "What a person allowed always is asked of nobody again.",
        "sources.claude-code.live.end": "A turn ends when no further answer is to come.",
        "sources.claude-code.live.steer": "What is said into a turn is answered within it.",
        "sources.claude-code.live.stop": "A stop is its own interrupt, and certain.",
        "sources.claude-code.live.failures": "A process that fails fails its turn with its words.",
        "sources.claude-code.live.environment": "Keys pass by name, what is not its own does not.",
        "sources.claude-code.live.setup": "What cannot be set is refused, what is missing named.",
    },
)


CODEX_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Codex",
    {
        "sources.codex-exec.errors": "An error ends a turn only where nothing else does.",
        "sources.codex-exec.usage": "A turn's usage is what it used, not the thread's sum.",
        "sources.codex-exec.agents": "Agents that a call names become subagents, with their end.",
        "sources.codex-app-server.answers": "An answer belongs to the side that asked.",
        "sources.codex-app-server.unknown-decision": "A settled request unanswered is unknown.",
        "sources.codex-app-server.prompts": "The prompt is the turn's; a later one steers it.",
        "sources.codex-app-server.agents": "Another thread is a subagent with its own turn.",
        "sources.codex-app-server.retry": "What a repeated request had streamed is taken back.",
        "sources.codex-app-server.errors": "Errors become categories of ours.",
        "sources.codex-app-server.items": "Items that recordings lack become what they should.",
        "sources.codex-exec.live.turn": "A turn asks nobody and goes on with Codex's thread.",
        "sources.codex-exec.live.failures": "A process that fails ends the turn, and says why.",
        "sources.codex-app-server.live.turn": "A turn goes on with the thread that Codex keeps.",
        "sources.codex-app-server.live.approvals": "A decision reaches Codex as what it is.",
        "sources.codex-app-server.live.policy": "A rule answers Codex before a person is asked.",
        "sources.codex-app-server.live.control": "A turn can be steered, stopped, and killed.",
        "sources.codex-app-server.live.agents": "A turn lasts as long as its subagents work.",
        "sources.codex-app-server.live.inputs": "Images and texts are given, others refused.",
        "sources.codex-app-server.live.failures": "A process that fails ends the turn with why.",
        "sources.codex-app-server.live.settings": "Settings that make no sense are refused.",
        "sources.codex-app-server.usage": "A turn's usage is what it used, not the thread's sum.",
    },
)


SOURCE_ACP_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md ACP",
    {
        "sources.acp.calls": "What a call shows, runs, gives and costs is kept apart, and kept.",
        "sources.acp.ids": "A response finds its request, though both sides count from 0.",
        "sources.acp.text": "Chunks become whole messages, and history is no new turn.",
        "sources.acp.tools": "Calls, diffs and terminals become facts once, when they are true.",
        "sources.acp.approvals": "A question is decided as the kind of the chosen option says.",
        "sources.acp.ends": "A turn ends as the response to its prompt says.",
        "sources.acp.costs": "A turn is charged its share of what the session has used.",
        "sources.acp.live.turn": "A turn goes on with its session, or says that it cannot.",
        "sources.acp.live.approvals": "A decision is the option that says the same.",
        "sources.acp.live.policy": "A rule answers the agent before a person is asked.",
        "sources.acp.live.files": "Files are those of the workspace, under the policy.",
        "sources.acp.live.control": "A turn is cancelled with its questions, or else killed.",
        "sources.acp.live.inputs": "An agent is given what it says it can take.",
        "sources.acp.live.failures": "An agent that fails ends the turn, and says why.",
        "sources.acp.live.settings": "Settings that make no sense are refused.",
        "sources.acp.signals": "Plans, modes and cancels become facts; unknown updates warn.",
    },
)


SOURCE_OPENCODE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md OpenCode",
    {
        "sources.opencode.sessions": "One session is the thread; those below it are subagents.",
        "sources.opencode.ends": "An idle session ends a turn, as the error before it says.",
        "sources.opencode.turns": "A user's message is a turn; one during a turn steers it.",
        "sources.opencode.tools": "A tool ends as its state says, and asks before it if it must.",
        "sources.opencode.retractions": "Messages and parts that are removed are taken back.",
        "sources.opencode.signals": "Retries, plans and diffs become facts; server events do not.",
        "sources.opencode.live.approvals": "A decision reaches a live OpenCode, a no with why.",
        "sources.opencode.live.control": "A live OpenCode is steered, aborted, and killed if deaf.",
        "sources.opencode.live.failures": "A live OpenCode that fails ends its turn, and why.",
        "sources.opencode.live.policy": "A rule answers a live OpenCode before a person is asked.",
        "sources.opencode.live.server": "Nobody else reaches the server of a live OpenCode.",
        "sources.opencode.live.turn": "A live OpenCode answers, and goes on with its session.",
        "sources.opencode.next": "Events of session.next come to the same screen, never twice.",
    },
)


SOURCE_SDK_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets, Traps",
    {
        "sources.recorded-runs.ends": "A recorded run ends as its recorder says, or was cut off.",
        "sources.recorded-runs.decisions": "A run that waits goes on with what was decided.",
        "sources.recorded-runs.undecided": "A run left at its question ended with an interrupt.",
        "sources.recorded-runs.times": "A time is stated in UTC, and one that is none is left out.",
        "sources.openai-agents.usage": "Usage adds up over the responses of a run.",
        "sources.openai-agents.same-id": "Items that share an id are distinguished by their place.",
        "sources.openai-agents.items-only": "Run items alone tell the words and the calls.",
        "sources.openai-agents.handoff": "A handoff names both agents and changes who speaks.",
        "sources.openai-agents.hosted": "A call that the provider carries out ends with its item.",
        "sources.openai-agents.mcp": "An MCP approval is asked and answered.",
        "sources.openai-agents.unknown": "Events that are not known are warnings with a ref.",
        "sources.langgraph.identity": "A node that runs twice is two tasks.",
        "sources.langgraph.subgraphs": "What a subgraph says stands in its own transcript.",
        "sources.langgraph.modes": "What several modes state is recorded once.",
        "sources.langgraph.failed-tool": "A tool message with an error is a failed call.",
        "sources.pydantic-ai.outcomes": "A result is recorded with its outcome.",
        "sources.pydantic-ai.deferred": "Deferred calls are asked about, and a handler's "
        "decision is recorded.",
        "sources.pydantic-ai.places": "Parts of another response are other messages.",
        "sources.a2a.states": "A remote task ends its turn as its state says.",
        "sources.a2a.teammate": "A remote agent is a teammate with a transcript of its own.",
        "sources.a2a.data": "Structured parts are calls, results and usage, or are kept.",
        "sources.a2a.artifacts": "The pieces of an artifact are one content.",
    },
)


SOURCE_LIVE_SDK_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "sources.md Targets, Traps",
        {
            "sources.sdk.live.values": "Whatever a program hands over becomes JSON and never "
            "raises.",
            "sources.sdk.live.wrap": "An object of an SDK is an agent; anything else is left "
            "alone.",
            "sources.sdk.live.failures": "A model's failure is reported by category, with a hint.",
            "sources.sdk.live.stop": "A turn is stopped while it speaks and while it waits, and "
            "the next one goes on.",
            "sources.sdk.live.policy": "A rule of the owner's decides before anybody is asked; "
            "that a tool sounds harmless does not.",
            "sources.sdk.live.again": "An SDK that lost its history gets it again from the facts.",
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
            "sources.observe.pydantic-ai": "A run is recorded the same, however it is driven.",
            "sources.observe.langgraph": "A graph is recorded, and one that continues is the "
            "same turn.",
            "sources.observe.openai-agents": "A run becomes facts whether or not it is streamed.",
            "sources.observe.approvals": "Requests to the program and its decisions are facts.",
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


SOURCE_REMOTE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets; edge.md",
    {
        "sources.remote.turns": "A remote agent is heard, and knows what was said before.",
        "sources.remote.answers": "What a person decides reaches the remote agent that asked.",
        "sources.remote.cancel": "A cancelled turn hangs up, and leaves nothing open.",
        "sources.remote.failures": "A refusal or a cut fails the turn, says why and no secret.",
        "sources.remote.settings": "Settings that cannot be right are refused; secrets are refs.",
        "sources.remote.events": "Events are read however they are cut, in bounded memory.",
    },
)


SOURCE_MAPPED_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets, Traps",
    {
        "sources.mapped.screen": "A mapped stream shows exactly what was reviewed.",
        "sources.mapped.codex": "A mapping of Codex tells what the adapter of Codex tells.",
        "sources.mapped.cut": "A mapped stream is valid and closed wherever it is cut.",
        "sources.mapped.same-ids": "A mapped stream that is converted twice gives the same facts.",
        "sources.mapped.hostile": "Odd items give valid facts by any mapping, and never an error.",
        "sources.mapped.values": "A mapping takes values by paths, constants and tables.",
        "sources.mapped.conditions": "A rule is about the items that its conditions hold for.",
        "sources.mapped.ids": "What has no id is numbered, or is the one that is open.",
        "sources.mapped.times": "A mapped time is ISO 8601 with an offset, or counted from 1970.",
        "sources.mapped.usage": "Usage is of a step, of a turn or of the thread, as mapped.",
        "sources.mapped.incomplete": "An item that lacks what its fact needs is a warning.",
        "sources.mapped.unknown": "An item that no rule is about is a warning with a ref.",
        "sources.mapped.ends": "A mapped turn ends once, and with it a text that was left open.",
        "sources.mapped.live.approvals": "A decision is written to a live program as it is mapped.",
        "sources.mapped.live.control": "A live program is stopped by its own line, or by a signal.",
        "sources.mapped.live.ends": "A live program that fails ends its turn, and why.",
        "sources.mapped.live.settings": "A live program that cannot work so is refused at once.",
        "sources.mapped.live.turn": "A live program is given its prompt, and its session again.",
        "sources.mapped.problems": "A mapping is refused with every problem at once.",
        "sources.mapped.command": "The convert command takes a mapping, and names its problems.",
    },
)


OUTLET_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md AI SDK, AG-UI; docs/outlets.md",
    {
        "outlets.names": "An outlet is found by its name.",
        "outlets.bounded": "An outlet keeps what is open, and a fact costs the same at any time.",
        "outlets.round-trip": "Words, calls, questions, order and ends come back as they were.",
        "outlets.hidden-reasoning": "Of reasoning a client gets the summary and no other word.",
        "outlets.notes": "What a protocol has no word for is sent beside it.",
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
        "outlets.ag-ui.subagents": "A subagent is marked as one, and suspended where its run ends.",
        "outlets.ag-ui.state": "Shared state is sent as state, and nothing else is.",
        "outlets.vendors": "The vendors' own clients read what the outlets write.",
        "outlets.outcomes": "Whatever ended reaches a client with its outcome, and whatever lasts "
        "reaches it.",
        "cli.convert.outlets": "Facts and streams are converted for clients, as lines or events.",
    },
)
