"""What a runtime refuses, each with a stable code.

RuntimeRefused
  GateRefused           a fact that may not stand where it stands
    TurnAlreadyActive   a second turn on a thread
  UnknownAgent          no agent of this name is registered
  UnknownTurn           no such turn on this thread
  QueueFull             as many turns wait on the thread as may
  SteerUnsupported      the agent of the turn cannot be steered
  SteerTooLong          what was said is longer than a steer may be
  NothingToSteer        the turn that was to be steered does not run
  TooManyTurns          as many turns run as may, and the caller does not want to wait
  ThreadElsewhere       another runtime works on the thread
  WorkspaceNotAllowed   the folder lies in no allowed workspace
  RuntimeClosing        the runtime is being closed and takes nothing new
  UnknownAction         no such action on this thread
  UnknownDecision       no such answer
  ActionDecided         the action was decided the other way
  ActionExpired         the action's time ran out
  ActionChanged         what was approved is not what is asked for now
  TurnFailed            raised by agents: the turn ends as failed, with this category
"""

from typing import Final


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
        super().__init__(f"no agent is called {name!r}; there are {', '.join(sorted(known))}")


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
        super().__init__(f"{size} characters are too many for a steer; submit it as a turn")


class NothingToSteer(RuntimeRefused):
    code = "turn_not_active"


class TooManyTurns(RuntimeRefused):
    code = "too_many_turns"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} turns run already, which is the limit; try again later")


class ThreadElsewhere(RuntimeRefused):
    """`instance` is the runtime that the thread belongs to now."""

    code = "thread_elsewhere"

    def __init__(self, thread_id: str, instance: str) -> None:
        self.instance = instance
        super().__init__(
            f"thread {thread_id} belongs to the runtime {instance}; take it over only if that "
            "runtime is known to be gone"
        )


class WorkspaceNotAllowed(RuntimeRefused):
    code = "workspace_not_allowed"


class RuntimeClosing(RuntimeRefused):
    code = "runtime_closing"

    def __init__(self) -> None:
        super().__init__("the runtime is being closed and takes nothing new")


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


class TurnFailed(RuntimeRefused):
    """Raised inside a turn to end it; `category` is stable, `hint` says what could help."""

    def __init__(self, category: str, message: str, hint: str | None = None) -> None:
        self.code = category
        self.hint = hint
        super().__init__(message)


FAILURE_CATEGORIES: Final = {
    "stream_interrupted": "the agent's stream ended without saying how the turn ended",
    "provider_error": "the agent raised an error",
    "invalid_fact": "the agent emitted a fact that a gate refused",
    "timeout": "the turn took longer than it may",
    "runtime_restarted": "the runtime stopped while the turn ran",
    "unrecorded": "the journal took no facts while the turn ran",
    "sandbox_unavailable": "a sandbox is required and cannot be had here",
}
"""Categories that the runtime itself gives a failed turn; agents may give others."""
