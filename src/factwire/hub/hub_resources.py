"""What a Hub answers with, and what it is asked with: the types of its REST interface."""

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from factwire.hub.limits import (
    CEREMONY_CHARACTERS,
    INVITATION_SECONDS,
    INVITATION_SECONDS_MOST,
    INVITATION_USES_MOST,
    METHOD_NAME_CHARACTERS,
    PASSWORD_CHARACTERS_MOST,
    PERSON_NAME_CHARACTERS,
)
from factwire.hub.records.hub_tables import Role

T = TypeVar("T")

MethodKind = Literal["password", "passkey", "provider", "confirmation"]
"""How somebody showed who they are; the last is a confirmation on another screen."""

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
    its tokens were last refreshed. `name` is what its person calls it, `method` how it was opened,
    and `methodId` with which passkey or identity.
    """

    session_id: str
    created_at: str
    last_used_at: str
    expires_at: str
    address: str
    user_agent: str
    method: MethodKind | None = None
    method_id: str | None = None
    name: str | None = None
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


class OfferedProvider(HubResource, frozen=True, kw_only=True):
    """An identity provider that people may use; with `creates`, also without an account yet."""

    provider: str
    title: str
    creates: bool


class OfferedMethods(HubResource, frozen=True, kw_only=True):
    """How people can sign in at this Hub. Passkeys need a Hub that is opened by a name, not by the
    number of an address.
    """

    passkeys: bool
    providers: list[OfferedProvider]


class Passkey(HubResource, frozen=True, kw_only=True):
    """A passkey of yours; one that is `synced` is kept in more than one place."""

    passkey_id: str
    name: str
    synced: bool
    created_at: str
    last_used_at: str | None = None


class ProviderIdentity(HubResource, frozen=True, kw_only=True):
    """An account of yours at an identity provider; `label` is what the provider calls it, and
    without `offered` this Hub no longer lets people sign in with that provider.
    """

    identity_id: str
    provider: str
    issuer: str
    label: str
    offered: bool
    created_at: str
    last_used_at: str | None = None


class SignInMethods(HubResource, frozen=True, kw_only=True):
    """The ways in which you can sign in."""

    password: bool
    passkeys: list[Passkey]
    identities: list[ProviderIdentity]


class PasskeyCeremony(HubResource, frozen=True, kw_only=True):
    """What a browser needs to make or to use a passkey. `ceremony` goes back with what the browser
    answers, once and within five minutes; `publicKey` is the JSON form of the options of
    `navigator.credentials`.
    """

    ceremony: str
    public_key: dict[str, Any]


class ProviderCeremony(HubResource, frozen=True, kw_only=True):
    """Where to go for signing in at a provider. Keep `ceremony` in the browser that goes there: it
    goes back with what the provider adds to its redirect.
    """

    ceremony: str
    authorization_url: str


class SocketTicket(HubResource, frozen=True, kw_only=True):
    """What a browser puts into the address of its socket as `access_token`, once, within so many
    seconds.
    """

    ticket: str
    expires_in: int


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


PersonName = Annotated[str, msgspec.Meta(min_length=1, max_length=PERSON_NAME_CHARACTERS)]
_Password = Annotated[str, msgspec.Meta(min_length=1, max_length=PASSWORD_CHARACTERS_MOST)]
Secret = Annotated[str, msgspec.Meta(min_length=1, max_length=_SECRET_CHARACTERS)]


class HubBody(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """What every body is: no member that is not known."""


class Registration(HubBody, frozen=True, kw_only=True):
    token: Secret
    name: PersonName
    password: _Password


class Login(HubBody, frozen=True, kw_only=True):
    name: PersonName
    password: _Password


class Refresh(HubBody, frozen=True, kw_only=True):
    refresh_token: Secret


class PasswordChange(HubBody, frozen=True, kw_only=True):
    """`currentPassword` is left out by somebody who has none."""

    new_password: _Password
    current_password: _Password | None = None


_Ceremony = Annotated[str, msgspec.Meta(min_length=1, max_length=CEREMONY_CHARACTERS)]
_MethodName = Annotated[str, msgspec.Meta(min_length=1, max_length=METHOD_NAME_CHARACTERS)]


class PasskeyStart(HubBody, frozen=True, kw_only=True):
    """With a `name`, only a passkey of that person signs in."""

    name: PersonName | None = None


class PasskeyLogin(HubBody, frozen=True, kw_only=True):
    """`credential` is what `navigator.credentials.get` gave, as its `toJSON` writes it."""

    ceremony: _Ceremony
    credential: dict[str, Any]


class PasskeyRegistrationStart(HubBody, frozen=True, kw_only=True):
    token: Secret
    name: PersonName


class NewPasskey(HubBody, frozen=True, kw_only=True):
    """`credential` is what `navigator.credentials.create` gave, as its `toJSON` writes it;
    `passkeyName` is what the passkey shall be called.
    """

    ceremony: _Ceremony
    credential: dict[str, Any]
    passkey_name: _MethodName = "Passkey"


class PasskeyChange(HubBody, frozen=True, kw_only=True):
    name: _MethodName


class ProviderStart(HubBody, frozen=True, kw_only=True):
    """With the `token` of an invitation, and a `name`, an account is created."""

    provider: PersonName
    token: Secret | None = None
    name: PersonName | None = None


class ProviderAnswer(HubBody, frozen=True, kw_only=True):
    """What the provider added to the address of its redirect, and which provider's it was."""

    ceremony: _Ceremony
    provider: PersonName
    state: Annotated[str, msgspec.Meta(max_length=CEREMONY_CHARACTERS)]
    code: Annotated[str, msgspec.Meta(max_length=CEREMONY_CHARACTERS)] | None = None
    iss: Annotated[str, msgspec.Meta(max_length=CEREMONY_CHARACTERS)] | None = None
    error: Annotated[str, msgspec.Meta(max_length=CEREMONY_CHARACTERS)] | None = None


class PersonChange(HubBody, frozen=True, kw_only=True):
    role: Role | msgspec.UnsetType = msgspec.UNSET
    disabled: bool | msgspec.UnsetType = msgspec.UNSET


class InvitationBody(HubBody, frozen=True, kw_only=True):
    role: Role = "member"
    max_uses: Annotated[int, msgspec.Meta(ge=1, le=INVITATION_USES_MOST)] = 1
    expires_in: Annotated[int, msgspec.Meta(ge=1, le=INVITATION_SECONDS_MOST)] = INVITATION_SECONDS
