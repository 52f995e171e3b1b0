"""The runtime: runs agents' turns and writes what they do as facts."""

from factwire.runtime.errors import (
    ActionChanged,
    ActionDecided,
    ActionExpired,
    ActionNotShown,
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
from factwire.runtime.live_thread import LiveThread
from factwire.runtime.mint import FactScope, Mint, new_id, utc_now
from factwire.runtime.provider import (
    CancelTurn,
    Decision,
    DecisionRequest,
    DeliveredSteer,
    Host,
    Provider,
    ReadThread,
    RespondAction,
    StartTurn,
)
from factwire.runtime.retry_policy import RetryPolicy
from factwire.runtime.runtime import Runtime
from factwire.runtime.runtime_identity import Identity, open_identity
from factwire.runtime.standing_rules import NoRule
from factwire.runtime.submissions import SteerReceipt, SubmissionReceipt
from factwire.runtime.turn_end import FAILURE_CATEGORIES
from factwire.runtime.turn_resources import (
    TurnResources,
    TurnSettings,
    build_turn_resources,
    build_turn_settings,
    open_blob_store,
)

__all__ = [
    "FAILURE_CATEGORIES",
    "ActionChanged",
    "ActionDecided",
    "ActionExpired",
    "ActionNotShown",
    "CancelTurn",
    "Decision",
    "DecisionRequest",
    "DeliveredSteer",
    "FactScope",
    "GateRefused",
    "Gates",
    "Host",
    "Identity",
    "LiveThread",
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
    "StartTurn",
    "SteerReceipt",
    "SteerTooLong",
    "SteerUnsupported",
    "SubmissionReceipt",
    "ThreadElsewhere",
    "TooManyTurns",
    "TurnAlreadyActive",
    "TurnFailed",
    "TurnResources",
    "TurnSettings",
    "UnknownAction",
    "UnknownAgent",
    "UnknownDecision",
    "UnknownTurn",
    "WorkspaceNotAllowed",
    "build_turn_resources",
    "build_turn_settings",
    "new_id",
    "open_blob_store",
    "open_identity",
    "utc_now",
]
