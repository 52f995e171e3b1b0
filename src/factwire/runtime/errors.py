"""What a runtime or an agent refuses, each with a stable code.

`RuntimeRefused` is the root; `code` never changes, the words may. `TurnFailed` is raised inside
a turn to end it.
"""

from pathlib import Path


class RuntimeRefused(Exception):
    """The root; `code` never changes, the words may."""

    code = "refused"


class GateRefused(RuntimeRefused):
    """A fact or a batch that a gate refused; nothing of it was written."""

    def __init__(self, code: str, message: str, fact_id: str | None = None) -> None:
        self.code = code
        self.fact_id = fact_id
        super().__init__(message)


class TurnAlreadyActive(GateRefused):
    """A thread has one active turn; queue the next one, or wait."""

    def __init__(self, thread_id: str | None, active: str) -> None:
        message = f"turn {active} is active on thread {thread_id}; queue the next one or wait"
        super().__init__("turn_already_active", message)


class UnknownAgent(RuntimeRefused):
    code = "unknown_agent"

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"unknown agent {name!r}; choose from {', '.join(sorted(known))}")


class IdentityUnusable(RuntimeRefused):
    """The file with the name and the key of a data folder."""

    code = "identity_unusable"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}; restore it from a backup, or move it away: a new one is created, "
            "earlier permissions no longer count, and open turns of this data folder stay open "
            "until you cancel them"
        )


class UnknownTurn(RuntimeRefused):
    code = "unknown_turn"


class QueueFull(RuntimeRefused):
    code = "queue_full"


class SteerUnsupported(RuntimeRefused):
    code = "steer_unsupported"

    def __init__(self, agent: str) -> None:
        super().__init__(f"{agent} cannot be steered while it works; queue this as the next turn")


class SteerTooLong(RuntimeRefused):
    code = "steer_too_long"

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} characters are too many to steer with; send it as a turn")


class NothingToSteer(RuntimeRefused):
    code = "turn_not_active"


class TooManyTurns(RuntimeRefused):
    code = "too_many_turns"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} turns are already running, which is the limit; try again later")


class ThreadElsewhere(RuntimeRefused):
    """`instance` is the runtime that the thread belongs to now."""

    code = "thread_elsewhere"

    def __init__(self, thread_id: str, instance: str) -> None:
        self.instance = instance
        super().__init__(
            f"thread {thread_id} belongs to the runtime {instance}; take it over only if you "
            "know that runtime is gone"
        )


class WorkspaceNotAllowed(RuntimeRefused):
    code = "workspace_not_allowed"


class RuntimeClosing(RuntimeRefused):
    code = "runtime_closing"

    def __init__(self) -> None:
        super().__init__("the runtime is shutting down and accepts no new work")


class UnknownAction(RuntimeRefused):
    code = "unknown_action"


class UnknownDecision(RuntimeRefused):
    code = "unknown_decision"

    def __init__(self, decision: str, known: list[str]) -> None:
        super().__init__(f"expected one of {', '.join(known)} as a decision, got {decision!r}")


class ActionDecided(RuntimeRefused):
    code = "action_already_decided"


class ActionExpired(RuntimeRefused):
    code = "action_expired"


class ActionChanged(RuntimeRefused):
    code = "action_changed"


class ActionNotShown(RuntimeRefused):
    """What would be allowed is nowhere shown in full any more."""

    code = "action_not_shown"


class TurnFailed(RuntimeRefused):
    """Raised inside a turn to end it; `category` is stable, `hint` says what could help."""

    def __init__(self, category: str, message: str, hint: str | None = None) -> None:
        self.code = category
        self.hint = hint
        super().__init__(message)


class AgentError(RuntimeRefused):
    """The root; `code` never changes, the words may."""

    code = "agent_error"


class UnknownKind(AgentError):
    code = "unknown_agent_kind"

    def __init__(self, kind: str, known: list[str]) -> None:
        there = ", ".join(sorted(known))
        super().__init__(f"unknown agent kind {kind!r}; choose from {there}, or use 'module:name'")


class BrokenEntryPoint(AgentError):
    code = "broken_entry_point"


class MissingAgentExtra(AgentError):
    """`extra` is the one of Factwire's that brings the library, where it is known."""

    code = "missing_extra"

    def __init__(self, kind: str, module: str, extra: str | None) -> None:
        self.extra = extra
        what = f"'factwire[{extra}]'" if extra else f"the package that provides {module}"
        super().__init__(
            f"{kind} needs the module {module}, which is not installed; install {what}"
        )


class InvalidAgent(AgentError):
    code = "invalid_agent"


class NameTaken(AgentError):
    code = "agent_name_taken"
