"""People, invitations and the audit log."""

from litestar import delete, get, patch, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.hub.hub_resources import (
    AuditEntry,
    CreatedInvitation,
    HubPage,
    Invitation,
    InvitationBody,
    PersonAccount,
    PersonChange,
)
from factwire.hub.people import accounts, administration
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    id_from_key,
    origin_of,
    services_of,
)
from factwire.serving.asgi import Problem
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit


@get("/v1/people", tags=["people"])
async def list_people(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[PersonAccount]:
    """List the accounts, newest first; for admins."""
    return await administration.list_people(services_of(request), after, limit)


@get("/v1/people/{person_id:str}", tags=["people"])
async def read_person(request: HubRequest, person_id: FromPath[str]) -> PersonAccount:
    """Get an account: your own or, for admins, anybody's."""
    return await accounts.read_account(
        services_of(request), caller_of(request), clean_id(person_id)
    )


@patch("/v1/people/{person_id:str}", tags=["people"])
async def change_person(
    request: HubRequest, person_id: FromPath[str], data: JSONBody[PersonChange]
) -> PersonAccount:
    """Change somebody's role, disable or enable them; for admins. Whoever is disabled is signed out
    everywhere, and their invitations are revoked.
    """
    hub, caller, chosen = services_of(request), caller_of(request), clean_id(person_id)
    # Whoever may not change an account gets to know of none but their own.
    await accounts.read_account(hub, caller, chosen)
    if not caller.may("admin"):
        raise Problem(
            403, "insufficient_role", f"this needs the role admin; yours is {caller.role}"
        )
    return await administration.change_person(hub, chosen, data, origin_of(request))


@get("/v1/invitations", tags=["invitations"])
async def list_invitations(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[Invitation]:
    """List the invitations that you made, newest first; never a link."""
    owner = caller_of(request).person_id
    return await administration.list_invitations(services_of(request), owner, after, limit)


@post("/v1/invitations", status_code=HTTP_201_CREATED, tags=["invitations"])
async def create_invitation(
    request: HubRequest, data: JSONBody[InvitationBody]
) -> CreatedInvitation:
    """Create an invitation; for admins. The response is the only one with its link."""
    return await administration.create_invitation(
        services_of(request),
        data.role,
        data.max_uses,
        data.expires_in,
        origin_of(request),
        invitation_id=id_from_key(request, "inv"),
    )


@get("/v1/invitations/{invitation_id:str}", tags=["invitations"])
async def read_invitation(request: HubRequest, invitation_id: FromPath[str]) -> Invitation:
    """Get an invitation that you made."""
    return await administration.read_invitation(
        services_of(request), caller_of(request), clean_id(invitation_id)
    )


@delete(
    "/v1/invitations/{invitation_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["invitations"]
)
async def revoke_invitation(request: HubRequest, invitation_id: FromPath[str]) -> None:
    """Revoke an invitation that you made; accounts that it created stay."""
    await administration.revoke_invitation(
        services_of(request),
        caller_of(request).person_id,
        clean_id(invitation_id),
        origin_of(request),
    )


@get("/v1/audit", tags=["audit"])
async def list_audit(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[AuditEntry]:
    """List what was done, newest first: everything for admins, else what you did and what was done
    to your account.
    """
    caller = caller_of(request)
    owner = None if caller.may("admin") else caller.person_id
    return await administration.list_audit(services_of(request), owner, after, limit)


GROUP = RouteGroup(
    handlers=[
        list_people,
        read_person,
        change_person,
        list_invitations,
        create_invitation,
        read_invitation,
        revoke_invitation,
        list_audit,
    ],
    access={
        "viewer": """
            GET /v1/people/{person_id}
            PATCH /v1/people/{person_id}
            GET /v1/invitations
            GET /v1/invitations/{invitation_id}
            DELETE /v1/invitations/{invitation_id}
            GET /v1/audit
        """,
        "admin": """
            GET /v1/people
            POST /v1/invitations
        """,
    },
    codes={
        "last_admin": "the only admin can be neither disabled nor made something else",
        "unknown_invitation": "none of your invitations has this id",
        "unknown_person": "nobody, or nobody that you may see, has this id",
    },
    ids={"CreatedInvitation": "invitationId"},
    listed={"PersonAccountPage": "personId", "InvitationPage": "invitationId"},
)
