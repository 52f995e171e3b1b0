"""The runtime: runs agents' turns and writes what they do as facts."""

from factwire.runtime.errors import (
    FAILURE_CATEGORIES,
    ActionChanged,
    ActionDecided,
    ActionExpired,
    GateRefused,
    NothingToSteer,
    QueueFull,
    RuntimeClosing,
    RuntimeRefused,
    SteerTooLong,
    SteerUnsupported,
    ThreadElsewhere,
    TooManyTurns,
    TurnAlreadyActive,
    TurnFailed,
    UnknownAction,
    UnknownAgent,
    UnknownDecision,
    UnknownTurn,
    WorkspaceNotAllowed,
)
from factwire.runtime.gates import Gates
from factwire.runtime.identity import Identity, identity_of
from factwire.runtime.live_threads import LiveThread
from factwire.runtime.means import Means, blobs_of, means_of
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
    SteerTaken,
)
from factwire.runtime.retry_policy import RetryPolicy
from factwire.runtime.runtime import Runtime
from factwire.runtime.settings import Settings, settings_of
from factwire.runtime.standing_rules import NoRule
from factwire.runtime.submission import Steered, Submitted

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
    "Identity",
    "LiveThread",
    "Means",
    "Mint",
    "NoRule",
    "NothingToSteer",
    "Provider",
    "QueueFull",
    "ReadThread",
    "RespondAction",
    "RetryPolicy",
    "Runtime",
    "RuntimeClosing",
    "RuntimeRefused",
    "Scope",
    "Settings",
    "StartTurn",
    "SteerTaken",
    "SteerTooLong",
    "SteerUnsupported",
    "Steered",
    "Submitted",
    "ThreadElsewhere",
    "TooManyTurns",
    "TurnAlreadyActive",
    "TurnFailed",
    "UnknownAction",
    "UnknownAgent",
    "UnknownDecision",
    "UnknownTurn",
    "WorkspaceNotAllowed",
    "blobs_of",
    "identity_of",
    "means_of",
    "new_id",
    "settings_of",
    "utc_now",
]
