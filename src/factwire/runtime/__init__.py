"""The runtime: runs agents' turns and writes what they do as facts."""

from factwire.runtime.errors import (
    FAILURE_CATEGORIES,
    ActionChanged,
    ActionDecided,
    ActionExpired,
    GateRefused,
    RuntimeRefused,
    TurnAlreadyActive,
    TurnFailed,
    UnknownAction,
    UnknownAgent,
    UnknownDecision,
    UnknownTurn,
)
from factwire.runtime.gates import Gates
from factwire.runtime.live_threads import LiveThread
from factwire.runtime.means import Means, means_of
from factwire.runtime.minting import Mint, Scope, new_id, utc_now
from factwire.runtime.provider import (
    ActionAsked,
    CancelTurn,
    Decision,
    Host,
    Provider,
    ReadThread,
    RespondAction,
    StartTurn,
)
from factwire.runtime.runtime import Runtime, Settings, Submitted

__all__ = [
    "FAILURE_CATEGORIES",
    "ActionAsked",
    "ActionChanged",
    "ActionDecided",
    "ActionExpired",
    "CancelTurn",
    "Decision",
    "GateRefused",
    "Gates",
    "Host",
    "LiveThread",
    "Means",
    "Mint",
    "Provider",
    "ReadThread",
    "RespondAction",
    "Runtime",
    "RuntimeRefused",
    "Scope",
    "Settings",
    "StartTurn",
    "Submitted",
    "TurnAlreadyActive",
    "TurnFailed",
    "UnknownAction",
    "UnknownAgent",
    "UnknownDecision",
    "UnknownTurn",
    "means_of",
    "new_id",
    "utc_now",
]
