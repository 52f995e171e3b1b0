"""How a runtime runs turns."""

import msgspec

from factwire.runtime.configuration.settings import Configuration
from factwire.runtime.limits import ACTIVE_TURNS, INTERRUPT_SECONDS, TURN_SECONDS
from factwire.runtime.retry_policy import RetryPolicy


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`retries` has the agents, by name, that are tried again otherwise than `retry` says."""

    turn_seconds: float = TURN_SECONDS
    interrupt_seconds: float = INTERRUPT_SECONDS
    active_turns: int = ACTIVE_TURNS
    retry: RetryPolicy = RetryPolicy()
    retries: dict[str, RetryPolicy] = msgspec.field(default_factory=dict[str, RetryPolicy])

    def retry_of(self, agent: str) -> RetryPolicy:
        return self.retries.get(agent, self.retry)


def settings_of(configuration: Configuration) -> Settings:
    """The settings that a configuration comes to."""
    agents = configuration.agents.items()
    return Settings(
        turn_seconds=configuration.limits.turn_seconds,
        active_turns=configuration.limits.concurrent_runs,
        retry=configuration.retry,
        retries={name: agent.retry for name, agent in agents if agent.retry is not None},
    )
