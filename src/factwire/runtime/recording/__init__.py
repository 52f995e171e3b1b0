"""Recording: the facts of anyone's own loop, async or not."""

from factwire.runtime.recording.blocking import BlockingCall, BlockingRecorder, BlockingTurn
from factwire.runtime.recording.calls import CallRecorder
from factwire.runtime.recording.recorder import OnAsk, Recorder
from factwire.runtime.recording.trials import TrialRecorder
from factwire.runtime.recording.turns import TurnRecorder

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
