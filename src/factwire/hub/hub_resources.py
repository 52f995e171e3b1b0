"""What a Hub answers with, and what it is asked with: the types of its REST interface."""

from typing import Annotated, Generic, TypeVar

import msgspec

from factwire.hub.limits import (
    INVITATION_SECONDS,
    INVITATION_SECONDS_MOST,
    INVITATION_USES_MOST,
    PASSWORD_CHARACTERS_MOST,
    PERSON_NAME_CHARACTERS,
)
from factwire.hub.records.hub_tables import Role

T = TypeVar("T")

_SECRET_CHARACTERS = 256


class HubResource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What every answer is: camelCase names, and no member that has nothing to say."""


class HubPage(HubResource, Generic[T], frozen=True, kw_only=True):
    """Some rows, newest first, and where the next page begins; without `next` there is none."""

    items: list[T]
    next: str | None = None


class PersonAccount(HubResource, frozen=True, kw_only=True):
    """Somebody who may sign in, unless `disabledAt` says since when not."""

    person_id: str
    name: str
    role: Role
    created_at: str
    disabled_at: str | None = None


class SignInSession(HubResource, frozen=True, kw_only=True):
    """A place where somebody is signed in; `current` is the one that asks, and `lastUsedAt` is when
    its tokens were last refreshed.
    """

    session_id: str
    created_at: str
    last_used_at: str
    expires_at: str
    address: str
    user_agent: str
    current: bool = False


class SignedIn(HubResource, frozen=True, kw_only=True):
    """The tokens of a session. `accessToken` goes into the header of every request; before it
    expires, `refreshToken` is exchanged for the next pair.
    """

    access_token: str
    expires_in: int
    refresh_token: str
    refresh_expires_in: int
    session_id: str
    person: PersonAccount


class Invitation(HubResource, frozen=True, kw_only=True):
    """A link by which accounts can be created. `createdBy` is absent for one that was made on the
    Hub's own machine.
    """

    invitation_id: str
    role: Role
    created_at: str
    expires_at: str
    max_uses: int
    uses: int
    created_by: str | None = None
    revoked_at: str | None = None


class CreatedInvitation(Invitation, frozen=True, kw_only=True):
    """The only answer that has the link and its secret."""

    token: str
    link: str


class AuditEntry(HubResource, frozen=True, kw_only=True):
    """Who did what, when, and from where. Without `actorId`, nobody was signed in: `via` says
    whether it was the operator at the terminal.
    """

    seq: int
    at: str
    action: str
    via: str
    address: str
    actor_id: str | None = None
    subject_id: str | None = None
    details: dict[str, str | int | bool] = msgspec.field(
        default_factory=dict[str, str | int | bool]
    )


class HubHealth(HubResource, frozen=True, kw_only=True):
    """`status` is degraded while the database cannot be used, and `code` says why."""

    status: str
    version: str
    code: str | None = None


_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=PERSON_NAME_CHARACTERS)]
_Password = Annotated[str, msgspec.Meta(min_length=1, max_length=PASSWORD_CHARACTERS_MOST)]
_Secret = Annotated[str, msgspec.Meta(min_length=1, max_length=_SECRET_CHARACTERS)]


class HubBody(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """What every body is: no member that is not known."""


class Registration(HubBody, frozen=True, kw_only=True):
    token: _Secret
    name: _Name
    password: _Password


class Login(HubBody, frozen=True, kw_only=True):
    name: _Name
    password: _Password


class Refresh(HubBody, frozen=True, kw_only=True):
    refresh_token: _Secret


class PasswordChange(HubBody, frozen=True, kw_only=True):
    current_password: _Password
    new_password: _Password


class PersonChange(HubBody, frozen=True, kw_only=True):
    role: Role | msgspec.UnsetType = msgspec.UNSET
    disabled: bool | msgspec.UnsetType = msgspec.UNSET


class InvitationBody(HubBody, frozen=True, kw_only=True):
    role: Role = "member"
    max_uses: Annotated[int, msgspec.Meta(ge=1, le=INVITATION_USES_MOST)] = 1
    expires_in: Annotated[int, msgspec.Meta(ge=1, le=INVITATION_SECONDS_MOST)] = INVITATION_SECONDS
