"""Outlets: facts as the streams of outside UI protocols; one module a protocol."""

from factwire.outlets.ag_ui import AgUiOutlet
from factwire.outlets.ai_sdk import AiSdkOutlet
from factwire.outlets.outlet import (
    DONE,
    OUTLETS,
    Framing,
    Outlet,
    OutletKind,
    UnknownOutlet,
    find_outlet,
    frame_item,
)

__all__ = [
    "DONE",
    "OUTLETS",
    "AgUiOutlet",
    "AiSdkOutlet",
    "Framing",
    "Outlet",
    "OutletKind",
    "UnknownOutlet",
    "find_outlet",
    "frame_item",
]
