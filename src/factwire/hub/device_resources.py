"""What a Hub answers with and is asked with about devices, joining and grants."""

from typing import Annotated, Literal

import msgspec

from factwire.facts.resources import GrantRole, MirrorPosition
from factwire.hub.hub_resources import HubBody, HubPage, HubResource, PersonName, Secret, T
from factwire.hub.limits import (
    AGENT_NAME_CHARACTERS,
    DEVICE_AGENTS,
    DEVICE_NAME_CHARACTERS,
    DEVICE_TEXT_CHARACTERS,
)
from factwire.hub.records.device_tables import AuthorizationKind, Decision, GrantKind


class StatePage(HubPage[T], frozen=True, kw_only=True):
    """A page of rows that events change: with the events after `asOf`, it is what a later page
    shows.
    """

    as_of: str


class MirroredEdgeSummary(HubResource, frozen=True, kw_only=True):
    """An Edge that has joined, the device that did last, and how far its mirror is."""

    edge_id: str
    owner_id: str
    device_id: str
    device_name: str
    online: bool
    created_at: str
    role: GrantRole | None = None
    mirror: MirrorPosition | None = None


class AccessGrant(HubResource, frozen=True, kw_only=True):
    """That something is shared with somebody: a device with all of its Edge, one thread of it, or
    one target.
    """

    grant_id: str
    owner_id: str
    owner_name: str
    grantee_id: str
    grantee_name: str
    kind: GrantKind
    edge_id: str
    role: GrantRole
    created_at: str
    thread_id: str | None = None
    target_id: str | None = None
    revoked_at: str | None = None


class DeviceAuthorization(msgspec.Struct, frozen=True, kw_only=True):
    """Codes of RFC 8628, in its words. The device shows `user_code` to a person, and polls with
    `device_code` no more often than every `interval` seconds.
    """

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class AuthorizationRequest(HubResource, frozen=True, kw_only=True):
    """What asks to join, or to sign in, from where and since when. `decision` is absent until
    there is one.
    """

    kind: AuthorizationKind
    name: str
    platform: str
    version: str
    address: str
    user_agent: str
    created_at: str
    expires_at: str
    edge_id: str | None = None
    agents: list[str] = msgspec.field(default_factory=list[str])
    replaces: str | None = None
    """The device that has joined as this Edge before, which this one will replace."""
    decision: Decision | None = None


class JoinedDevice(HubResource, frozen=True, kw_only=True):
    """The only answer with the token of a device."""

    device_id: str
    device_token: str
    edge_id: str
    name: str
    person_name: str


class DeviceAccess(HubResource, frozen=True, kw_only=True):
    """An access token of a device."""

    access_token: str
    expires_in: int
    device_id: str
    edge_id: str


PairingState = Literal["open", "claimed", "confirmed", "refused", "collected"]


class Pairing(HubResource, frozen=True, kw_only=True):
    """A code on a signed-in screen, by which another one asks to be signed in as well. `claim` is
    what asked.
    """

    pairing_id: str
    state: PairingState
    created_at: str
    expires_at: str
    claim: AuthorizationRequest | None = None


class CreatedPairing(Pairing, frozen=True, kw_only=True):
    """The only answer with the code. `qr` is an SVG image of the link."""

    code: str
    link: str
    qr: str


class ClaimedPairing(HubResource, frozen=True, kw_only=True):
    """What a screen that claimed a pairing polls with, until it is confirmed or refused."""

    device_code: str
    expires_in: int
    interval: int


DeviceName = Annotated[str, msgspec.Meta(min_length=1, max_length=DEVICE_NAME_CHARACTERS)]
_Text = Annotated[str, msgspec.Meta(max_length=DEVICE_TEXT_CHARACTERS)]
_EdgeId = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
_Agent = Annotated[str, msgspec.Meta(min_length=1, max_length=AGENT_NAME_CHARACTERS)]
Agents = Annotated[list[_Agent], msgspec.Meta(max_length=DEVICE_AGENTS)]
_SubjectId = Annotated[str, msgspec.Meta(min_length=1, max_length=DEVICE_TEXT_CHARACTERS)]


class DeviceAuthorizationBody(HubBody, frozen=True, kw_only=True):
    """What asks: an Edge with its id or, without one, a screen or a terminal that somebody wants to
    be signed in at.
    """

    name: DeviceName
    edge_id: _EdgeId | msgspec.UnsetType = msgspec.UNSET
    platform: _Text = ""
    version: _Text = ""
    agents: Agents = msgspec.field(default_factory=list[str])


class AuthorizationDecision(HubBody, frozen=True, kw_only=True):
    decision: Decision


class DevicePoll(HubBody, frozen=True, kw_only=True):
    device_code: Secret


class DevicePollForm(msgspec.Struct, frozen=True, kw_only=True):
    """The same as a form of RFC 8628, in its words; its other parameters are ignored."""

    grant_type: str
    device_code: Secret


class DeviceTokenBody(HubBody, frozen=True, kw_only=True):
    device_token: Secret
    version: _Text | msgspec.UnsetType = msgspec.UNSET
    agents: Agents | msgspec.UnsetType = msgspec.UNSET


class PairingClaim(HubBody, frozen=True, kw_only=True):
    code: Secret
    name: DeviceName | msgspec.UnsetType = msgspec.UNSET


class DeviceChange(HubBody, frozen=True, kw_only=True):
    name: DeviceName


class SessionChange(HubBody, frozen=True, kw_only=True):
    name: DeviceName


class GrantBody(HubBody, frozen=True, kw_only=True):
    """Shares a device (`deviceId`), or a thread or a target of it, with the person of a name."""

    person: PersonName
    role: GrantRole
    device_id: _SubjectId
    thread_id: _SubjectId | msgspec.UnsetType = msgspec.UNSET
    target_id: _SubjectId | msgspec.UnsetType = msgspec.UNSET
