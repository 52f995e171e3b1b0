"""What handlers of a Hub need of a request: the services, who sends it, and the ids in it; and what
a module of handlers says about them.
"""

import re
from typing import Any, Final, cast

import msgspec

from factwire.hub.hub_guard import CALLER, ORIGIN, RouteAccess
from factwire.hub.link.hub_links import HubLinks
from factwire.hub.link.runner_keeper import RunnerKeeper
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.request_rates import Rate
from factwire.serving.guard import OpenRoutes
from factwire.serving.idempotency import check_key, derive_id
from factwire.serving.rest import JsonRequest


class RouteGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Some routes and all that is to be known about them.

    `access` lists for each kind of caller, a line each, the routes that they may use; a role
    includes those below it, and where a viewer may ask, the query finds what is theirs alone. What
    is listed nowhere is for admins. `rates` are limits beside that of every request, `codes` why
    requests are refused, `ids` and `listed` which member of an answer or of a list names a thing.
    """

    handlers: list[Any]
    access: dict[RouteAccess, str]
    open_routes: OpenRoutes = frozenset()
    rates: dict[str, Rate] = {}
    codes: dict[str, str] = {}
    ids: dict[str, str] = {}
    listed: dict[str, str] = {}

    def access_by_route(self) -> dict[str, RouteAccess]:
        return {
            route.strip(): access
            for access, routes in self.access.items()
            for route in routes.strip().splitlines()
        }


_ID: Final = re.compile(r"[A-Za-z0-9_]{1,64}")


class HubRequest(JsonRequest):
    """A request to a Hub."""


def services_of(request: HubRequest) -> HubServices:
    return cast("HubServices", request.app.state["hub"])


def link_of(request: HubRequest) -> HubLinks:
    return cast("HubLinks", request.app.state["link"])


def runners_of(request: HubRequest) -> RunnerKeeper:
    return cast("RunnerKeeper", request.app.state["runners"])


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
