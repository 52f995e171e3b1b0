"""What handlers of a Hub need of a request: the services, who sends it, and the ids in it."""

import re
from typing import Any, Final, cast

from factwire.hub.hub_guard import CALLER, ORIGIN
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.serving.idempotency import check_key, derive_id
from factwire.serving.rest import JsonRequest

_ID: Final = re.compile(r"[A-Za-z0-9_]{1,64}")


class HubRequest(JsonRequest):
    """A request to a Hub."""


def services_of(request: HubRequest) -> HubServices:
    return cast("HubServices", request.app.state["hub"])


def _state_of(request: HubRequest) -> dict[str, Any]:
    return request.scope["state"]  # pyright: ignore[reportTypedDictNotRequiredAccess]


def caller_of(request: HubRequest) -> HubCaller:
    return cast("HubCaller", _state_of(request)[CALLER])


def origin_of(request: HubRequest) -> ActionOrigin:
    """Who asks, and from where."""
    return cast("ActionOrigin", _state_of(request)[ORIGIN])


def clean_id(text: str) -> str:
    """An id as the database may be asked for it; what cannot be one is nobody's."""
    return text if _ID.fullmatch(text) else "-"


def id_from_key(request: HubRequest, prefix: str, owner: str | None = None) -> str | None:
    """The id that follows from the Idempotency-Key of an owner, by default whoever asks; None where
    there is no key.
    """
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    whose = owner or caller_of(request).person_id
    return derive_id(prefix, f"{whose}\0{request.method} {request.url.path}\0{check_key(key)}")
