"""What the toolbox and the agents that come with Factwire promise."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_TOOLBOX: Final = requirements(
    "edge, Runs; guarantees, S8 and S10 to S13",
    {
        "runtime.toolbox.call": "A call is started, judged, done and ended, in facts in order.",
        "runtime.toolbox.read": "A file is read whole or by lines.",
        "runtime.toolbox.write": "A written file is told with its diff and its content by refs.",
        "runtime.toolbox.patch": "A patch changes all its files or none.",
        "runtime.toolbox.search": "A search is bounded, and passes over what may not be read.",
        "runtime.toolbox.approval": "A person is asked about exactly what is done; no answer is "
        "a no, and what changed meanwhile is left alone.",
        "runtime.toolbox.resume": "A call that waits is done after a restart, if it still is what "
        "was shown and the policy still lets it.",
        "runtime.toolbox.denied": "What the policy denies is not done, and nobody is asked.",
        "runtime.toolbox.workspace": "No path leads out of the workspace, by dots or links.",
        "runtime.toolbox.secrets": "A secret in a file or in output is kept nowhere.",
        "runtime.toolbox.big-output": "Long output is behind a ref.",
        "runtime.toolbox.failures": "A call that fails has a category that never changes.",
        "runtime.toolbox.sandbox": "Commands run in the sandbox, or not at all where it is needed.",
        "runtime.toolbox.command-lines": "A line is arguments where that is certain, and else text "
        "for a shell; the policy judges what is run.",
    },
)

_AGENTS: Final = requirements(
    "facts, Provider; edge, Runs",
    {
        "runtime.agents.shell": "A prompt is a command line; its exit code ends the turn.",
        "runtime.agents.shell.cancel": "Cancelling ends the whole process group.",
        "runtime.agents.shell.resume": "A command waits for its approval across a restart, and "
        "runs only if it is still what was shown.",
        "runtime.agents.demo.surfaces": "A tour puts something true on every surface.",
        "runtime.agents.demo.team": "Two subagents do work of their own, and one hands over.",
        "runtime.agents.demo.approval": "A command and a plan wait for a person's answer.",
        "runtime.agents.demo.files": "Files are written, patched and read, with their diffs.",
        "runtime.agents.demo.fail": "A demo fails on request, with a category and a hint.",
        "runtime.agents.demo.long": "Five megabytes of real output are behind a ref.",
        "runtime.agents.demo.cancel": "A demo can be stopped while it runs or speaks.",
        "runtime.agents.demo.resume": "A demo goes on after a restart at whatever it asked.",
        "runtime.agents.demo.themes": "A word chooses the theme, help lists all, speech is paced.",
        "runtime.agents.manifest": "Every agent states what it can in a sound manifest.",
    },
)

_REGISTRY: Final = requirements(
    "design.md; configuration, agents",
    {
        "runtime.agents.registry": "Agents are registered by configuration and by entry point.",
        "runtime.agents.registry.errors": "An agent that cannot be had says why, by a stable code, "
        "and leaves the others.",
        "runtime.agents.registry.lazy": "An agent is made when it is asked for; what is installed "
        "and not used is not imported.",
        "runtime.agents.registry.wrappers": "What a kind names may be an agent, an object of an "
        "SDK that a wrapper knows, or a callable that makes either.",
        "runtime.agents.registry.means": "Policy, sandbox, limits and workspaces of agents are "
        "those of the configuration.",
    },
)

AGENT_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_TOOLBOX, *_AGENTS, *_REGISTRY)
