"""What tools of MCP servers promise."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_CALLS: Final = requirements(
    "sources, Targets and MCP; facts, Provider",
    {
        "runtime.mcp.call": "A tool of a server is called by stdio or HTTP, and told as any call: "
        "started, progress, and one end.",
        "runtime.mcp.lazy": "No server is started before a tool of it is wanted.",
        "runtime.mcp.policy": "The policy judges every call before it is made; what a server hints "
        "at decides nothing.",
        "runtime.mcp.results": "Pictures, sounds, files and links of a result become artifacts and "
        "refs; no bytes are in a fact.",
        "runtime.mcp.failures": "A failure that the tool states, a refusal by the protocol and a "
        "missing tool are three categories, each with a hint.",
        "runtime.mcp.lists": "The lists of the configuration say which tools of a server count.",
        "runtime.mcp.changed-list": "A list of tools that changes is asked for again.",
        "runtime.mcp.log": "What a server logs as a warning or worse is a warning; the rest is "
        "not told.",
        "runtime.mcp.agent": "The openai agent offers its model the tools of every server that can "
        "be had, and goes on without the others.",
        "runtime.mcp.not-offered": "A server is given the workspace as its root, and no model.",
    },
)

_PEOPLE: Final = requirements(
    "sources, Targets; facts, Provider",
    {
        "runtime.mcp.questions": "What a server asks is put to a person with its form or link, "
        "outside of the time of the call, and the answer goes back as the protocol has it.",
        "runtime.mcp.cancel": "Cancelling ends a call here and tells the server so.",
        "runtime.mcp.resume": "After a restart an approved call is made once, and one that was "
        "under way is not made again.",
    },
)

_HARM: Final = requirements(
    "sources, MCP; guarantees, 9 and S13",
    {
        "runtime.mcp.death": "A server that dies costs the call that ran; the next one starts it "
        "again.",
        "runtime.mcp.start": "A server that does not start in time, or at all, says why in bounded "
        "words.",
        "runtime.mcp.timeout": "A call that takes too long is cancelled at the server and fails as "
        "a timeout.",
        "runtime.mcp.garbage": "What a server writes that is no message is passed over.",
        "runtime.mcp.bounds": "Messages, lists, results and schemas of a server are bounded, and "
        "none of its patterns is run.",
        "runtime.mcp.names": "A tool has one safe name, which no other tool of any server has.",
        "runtime.mcp.secrets": "Secrets are references to variables; they reach the server, and no "
        "fact, message or model.",
        "runtime.mcp.extra": "A missing library is named with the extra that brings it.",
        "runtime.mcp.configuration": "A server is a program or a URL; a secret in a file is "
        "refused without being repeated.",
        "runtime.mcp.doctor": "The doctor says what each server needs and lacks, and starts none.",
    },
)

MCP_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_CALLS, *_PEOPLE, *_HARM)
