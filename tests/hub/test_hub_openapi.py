"""S1, S6 and R13, walked by the OpenAPI document: every route without a token, with every role and
under other people's ids, and with whatever the document allows or forbids.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis import checks as common_checks
from schemathesis.specs.openapi import checks as openapi_checks

from factwire.hub.hub_app import OPEN_ROUTES, ROUTE_ROLES, build_openapi
from factwire.hub.records.hub_tables import ROLES
from tests.hub.hub_process import HubProcess, hub_process
from tests.hub.hubs import PASSWORD, HubPerson, RunningHub, running_hub

DOCUMENT = build_openapi()
OPERATIONS: list[tuple[str, str, dict[str, Any]]] = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
CLOSED = [each for each in OPERATIONS if each[:2] not in OPEN_ROUTES]
UNKNOWN = ("usr_nobody", "a/b", "...", "%00", "\\u0000", "é", "x" * 500, "a:b", "*", "'--", "-")
BODIES: dict[str, Any] = {
    "changePerson": {"role": "admin"},
    "createInvitation": {},
    "changePassword": {"currentPassword": "wrong password", "newPassword": "a new password"},
}


def body_of(operation: dict[str, Any]) -> Any:
    return BODIES[operation["operationId"]] if "requestBody" in operation else None


@pytest.mark.asyncio
@pytest.mark.requirement("hub.owners")
async def test_every_route_without_a_token_is_refused(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        await hub.first_admin()
        assert len(CLOSED) == len(OPERATIONS) - 4
        for method, path, operation in CLOSED:
            named = re.sub(r"\{\w+\}", "x", path)
            for headers in ({}, {"authorization": "Basic YTpi"}, {"authorization": "Bearer x"}):
                answer = await hub.http.request(
                    method, named, json=body_of(operation), headers=headers
                )
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
            in_address = await hub.http.request(method, f"{named}?access_token=x")
            assert in_address.json()["code"] == "token_in_url"
        for path in ("/", "/v1", "/v1/nothing", "/docs"):
            assert (await hub.http.get(path)).status_code == 401


async def things_of(hub: RunningHub, admin: HubPerson, name: str) -> tuple[HubPerson, Any]:
    """Somebody, and one id of everything that belongs to them."""
    person = await hub.join(admin, name, "admin")
    made = await person.post("/v1/invitations", {})
    return person, {
        "personId": person.person_id,
        "sessionId": person.session_id,
        "invitationId": made["invitationId"],
    }


@pytest.mark.asyncio
@pytest.mark.requirement("hub.owners")
@pytest.mark.parametrize("role", ROLES)
async def test_what_belongs_to_somebody_else_is_not_found(tmp_path: Path, role: str):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        _, ids = await things_of(hub, ada, "Bo")
        eve = await hub.join(ada, "Eve", role)
        walked = 0
        for method, path, operation in CLOSED:
            if "{" not in path:
                continue
            admins_may = "{personId}" in path and role == "admin"
            walked += 1
            answer = await eve.request(method, path.format(**ids), body_of(operation))
            assert answer.status_code == (200 if admins_may else 404), (method, path, answer.text)
            for unknown in UNKNOWN:
                named = re.sub(r"\{\w+\}", quote(unknown, safe=""), path)
                missing = await eve.request(method, named, body_of(operation))
                assert missing.status_code == 404, (method, named, missing.text)
                if not admins_may:
                    # Somebody else's id and nobody's cannot be told apart.
                    assert missing.json()["code"] == answer.json()["code"]
        assert walked == 5


@pytest.mark.asyncio
@pytest.mark.requirement("hub.roles")
async def test_each_role_may_use_the_routes_of_the_table(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        for role in ROLES:
            person = await hub.join(ada, f"A {role}", role)
            for method, path, operation in CLOSED:
                if operation["operationId"] in ("logout", "endSession"):
                    continue
                template = re.sub(r"(?<!^)([A-Z])", r"_\1", path).lower()
                needed = ROUTE_ROLES[f"{method} {template}"]
                named = path.replace("{personId}", person.person_id)
                answer = await person.request(
                    method, re.sub(r"\{\w+\}", "x", named), body_of(operation)
                )
                allowed = ROLES.index(role) <= ROLES.index(needed)
                refused = answer.status_code == 403 and answer.json()["code"] != "password_wrong"
                own_role = operation["operationId"] == "changePerson" and role != "admin"
                assert refused is (not allowed or own_role), (role, method, path, answer.text)


@pytest.mark.asyncio
@pytest.mark.requirement("hub.owners")
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, "host_not_allowed"),
        ({"origin": "http://evil.example"}, "origin_not_allowed"),
        ({"origin": "null"}, "origin_not_allowed"),
        ({"sec-fetch-site": "cross-site"}, "cross_site_request"),
        ({"content-type": "text/plain"}, "json_only"),
    ],
)
async def test_a_page_of_somebody_else_signs_nobody_in(
    tmp_path: Path, headers: dict[str, str], code: str
):
    async with running_hub(tmp_path) as hub:
        body = b'{"name":"Ada","password":"x"}'
        plain = {"content-type": "application/json"}
        answer = await hub.http.post("/v1/auth/login", content=body, headers=plain | headers)
        assert answer.json()["code"] == code


@pytest.mark.asyncio
@pytest.mark.requirement("hub.join-page")
async def test_a_page_of_the_hub_itself_may_register_behind_a_proxy(tmp_path: Path):
    async with running_hub(tmp_path, url="https://hub.example") as hub:
        page = {"host": "hub.example", "origin": "https://hub.example"}
        assert (await hub.register(hub.first_token, "Ada", **page)).status_code == 201
        other = {"host": "hub.example", "origin": "https://hub.example.evil"}
        assert (await hub.register("none", "Eve", **other)).json()["code"] == "origin_not_allowed"


CHECKS: list[Any] = [
    cast("Any", common_checks).not_a_server_error,
    cast("Any", openapi_checks).response_schema_conformance,
    cast("Any", openapi_checks).content_type_conformance,
    cast("Any", openapi_checks).status_code_conformance,
]
REJECTED: Any = cast("Any", openapi_checks).negative_data_rejection
QUIET = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)
REFUSALS = ["400", "401", "403", "404", "405", "409", "410", "413", "414", "415", "422", "431"]


class Caller:
    """Sends cases as an admin, and holds each answer to the document."""

    def __init__(self, hub: HubProcess) -> None:
        self.url = hub.url
        self.session = requests.Session()
        self.session.trust_env = False
        self.statuses: Counter[int] = Counter()
        body = {"token": hub.first_token, "name": "Ada", "password": PASSWORD}
        answer = self.session.post(f"{self.url}/v1/auth/register", json=body, timeout=60)
        assert answer.status_code == 201, answer.text
        self.sign_in()

    def sign_in(self) -> None:
        body = {"name": "Ada", "password": PASSWORD}
        self.session.headers.pop("authorization", None)
        answer = self.session.post(f"{self.url}/v1/auth/login", json=body, timeout=60)
        self.session.headers["authorization"] = f"Bearer {answer.json()['accessToken']}"

    def attack(self, operation: Any, mode: GenerationMode, checks: list[Any]) -> None:
        strategy = operation.as_strategy(generation_mode=mode)

        @given(cases=st.lists(strategy, min_size=4, max_size=4))
        @settings(QUIET, max_examples=8)
        def send(cases: list[Any]) -> None:
            for case in cases:
                self.call(case, checks)

        send()

    def call(self, case: Any, checks: list[Any]) -> None:
        answer = case.call(base_url=self.url, session=self.session, timeout=280)
        self.statuses[answer.status_code] += 1
        case.validate_response(answer, checks=checks)
        if case.operation.definition.raw["operationId"] == "logout":
            self.sign_in()


@pytest.mark.requirement("hub.openapi")
@pytest.mark.timeout(600)
def test_every_answer_is_one_that_the_document_lists(tmp_path: Path):
    document = build_openapi()
    del document["security"], document["components"]["securitySchemes"]
    schema: Any = schemathesis.openapi.from_dict(document)
    schema.config.checks.negative_data_rejection.expected_statuses = REFUSALS
    with hub_process(tmp_path) as hub:
        caller = Caller(hub)
        operations: list[Any] = [result.ok() for result in schema.get_all_operations()]
        for operation in operations:
            caller.attack(operation, GenerationMode.POSITIVE, CHECKS)
            if operation.query or operation.body:
                caller.attack(operation, GenerationMode.NEGATIVE, [*CHECKS, REJECTED])
        assert caller.statuses.total() >= 500
        assert {200, 201, 204, 400, 401, 404} <= caller.statuses.keys()
        assert httpx.get(f"{hub.url}/v1/health", trust_env=False).status_code == 200
        assert hub.failures() == []
