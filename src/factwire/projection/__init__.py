"""Projection: what facts mean on a screen, as a pure function of them.

Facts go in one at a time; a state and the changes to it come out. No input or output, no clock.
"""

from factwire.projection.changes import Changes, Head, Operation, advance, folded
from factwire.projection.checkpoints import UnreadableCheckpoint
from factwire.projection.json_patch import Document, PatchFailed
from factwire.projection.projection import Projection, project
from factwire.projection.state import (
    STATE_VERSION,
    ProjectionState,
    decode_state,
    empty_state,
    encode_state,
)
from factwire.projection.text import Text

__all__ = [
    "STATE_VERSION",
    "Changes",
    "Document",
    "Head",
    "Operation",
    "PatchFailed",
    "Projection",
    "ProjectionState",
    "Text",
    "UnreadableCheckpoint",
    "advance",
    "decode_state",
    "empty_state",
    "encode_state",
    "folded",
    "project",
]
