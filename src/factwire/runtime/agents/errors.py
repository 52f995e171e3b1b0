"""Why an agent cannot be had, each with a stable code.

AgentError
├── UnknownKind        no such kind of agent is installed
├── BrokenEntryPoint   what an entry point names cannot be loaded, or fails to make an agent
├── MissingExtra       a library that the agent needs is not installed
├── InvalidAgent       what was made is no agent, or its manifest or options are unsound
└── NameTaken          two registrations have one name; the first one counts
"""

from factwire.runtime.errors import RuntimeRefused


class AgentError(RuntimeRefused):
    """The root; `code` never changes, the words may."""

    code = "agent_error"


class UnknownKind(AgentError):
    code = "unknown_agent_kind"

    def __init__(self, kind: str, known: list[str]) -> None:
        there = ", ".join(sorted(known))
        super().__init__(f"no agent is of kind {kind!r}; there are {there}, or use 'module:name'")


class BrokenEntryPoint(AgentError):
    code = "broken_entry_point"


class MissingExtra(AgentError):
    """`extra` is the one of Factwire's that brings the library, where it is known."""

    code = "missing_extra"

    def __init__(self, kind: str, module: str, extra: str | None) -> None:
        self.extra = extra
        what = f"'factwire[{extra}]'" if extra else f"the package that holds {module}"
        super().__init__(f"{kind} needs the module {module}, which is not here; install {what}")


class InvalidAgent(AgentError):
    code = "invalid_agent"


class NameTaken(AgentError):
    code = "agent_name_taken"
