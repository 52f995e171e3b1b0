"""What can be set for an `openai` agent, and what of it a single turn may set otherwise.

A turn may ask for less, or for another tone; it cannot raise the limits of the configuration.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from factwire.runtime.agents.openai.limits import (
    HISTORY_CHARACTERS,
    MOST_RETRIES,
    MOST_STEPS,
    RETRIES,
    SILENCE_SECONDS,
    STEPS,
)
from factwire.runtime.errors import TurnFailed

Effort = Literal["none", "minimal", "low", "medium", "high"]

_OF_A_TURN: Final = ("instructions", "max_tokens", "reasoning_effort", "steps", "temperature")


class OpenAIOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`instructions` are added to those that come with the agent; what is None is left to the
    endpoint.
    """

    instructions: str | None = None
    steps: Annotated[int, msgspec.Meta(ge=1, le=MOST_STEPS)] = STEPS
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    reasoning_effort: Effort | None = None
    retries: Annotated[int, msgspec.Meta(ge=0, le=MOST_RETRIES)] = RETRIES
    history_characters: Annotated[int, msgspec.Meta(ge=0)] = HISTORY_CHARACTERS
    silence_seconds: Annotated[float, msgspec.Meta(gt=0)] = SILENCE_SECONDS

    def of_turn(self, given: dict[str, Any]) -> "OpenAIOptions":
        """The options of one turn; raises `TurnFailed`."""
        unknown = sorted(set(given) - {*_OF_A_TURN, "model"})
        if unknown:
            expected = ", ".join(("model", *_OF_A_TURN))
            raise _invalid(f"expected {expected}, got {', '.join(unknown)}")
        chosen = {name: given[name] for name in _OF_A_TURN if name in given}
        try:
            merged = msgspec.convert({**msgspec.structs.asdict(self), **chosen}, OpenAIOptions)
        except msgspec.ValidationError as error:
            raise _invalid(str(error)) from error
        return msgspec.structs.replace(merged, steps=min(merged.steps, self.steps))


def model_of_turn(given: dict[str, Any], configured: str) -> str:
    """The model of one turn; raises `TurnFailed`."""
    model = given.get("model", configured)
    if not isinstance(model, str) or not model.strip():
        raise _invalid(f"expected the name of a model, got {model!r}")
    return model


def _invalid(message: str) -> TurnFailed:
    return TurnFailed("invalid_options", f"the options of the turn: {message}", "Mend the options.")
