"""Outlets: facts as the streams of outside UI protocols; one module a protocol."""

from factwire.outlets.ag_ui import AgUiOutlet
from factwire.outlets.ai_sdk import AiSdkOutlet
from factwire.outlets.framing import DONE, Framing, framed
from factwire.outlets.outlet import OUTLETS, Outlet, OutletKind, UnknownOutlet, outlet_of

__all__ = [
    "DONE",
    "OUTLETS",
    "AgUiOutlet",
    "AiSdkOutlet",
    "Framing",
    "Outlet",
    "OutletKind",
    "UnknownOutlet",
    "framed",
    "outlet_of",
]
