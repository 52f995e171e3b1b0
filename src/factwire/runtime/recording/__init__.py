"""Recording: the facts of anyone's own loop, async or not."""

from factwire.runtime.recording.blocking_recorder import (
    BlockingCall,
    BlockingRecorder,
    BlockingTurn,
)
from factwire.runtime.recording.recorder import OnAsk, Recorder, TrialRecorder
from factwire.runtime.recording.turn_recorder import CallRecorder, TurnRecorder

__all__ = [
    "BlockingCall",
    "BlockingRecorder",
    "BlockingTurn",
    "CallRecorder",
    "OnAsk",
    "Recorder",
    "TrialRecorder",
    "TurnRecorder",
]
