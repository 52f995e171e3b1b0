"""S1, S6 and R13, walked by the OpenAPI document: every route without a token, with every role and
under other people's ids, and with whatever the document allows or forbids.
"""

import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from urllib.parse import quote

import httpx
import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis import checks as common_checks
from schemathesis.specs.openapi import checks as openapi_checks
from sqlalchemy import ColumnElement, insert, select, true

from factwire.hub.approvals import approval_records
from factwire.hub.frames.frame_types import FramePayload
from factwire.hub.frames.hub_asyncapi import list_frames
from factwire.hub.frames.hub_connections import find_edge_device
from factwire.hub.hub_app import OPEN_ROUTES, ROUTE_ACCESS, build_openapi
from factwire.hub.link import agent_tasks as link_tasks
from factwire.hub.records import sign_in_records
from factwire.hub.records.device_tables import devices, edges, runners
from factwire.hub.records.hub_tables import ROLES
from factwire.hub.records.link_tables import agent_tasks, deliveries
from factwire.hub.records.notification_tables import notification_targets
from factwire.hub.request_rates import RequestRates
from tests.hub.asking_devices import AskingDevice
from tests.hub.chat_people import create_group
from tests.hub.hub_process import HubProcess, hub_process
from tests.hub.hubs import PASSWORD, HubPerson, RunningHub, running_hub
from tests.hub.push_services import BrowserKeys
from tests.hub.team_desks import TeamDesk
from tests.trials import TRIAL_SECONDS, count_trials

DOCUMENT = build_openapi()
OPERATIONS: list[tuple[str, str, dict[str, Any]]] = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
CLOSED = [each for each in OPERATIONS if each[:2] not in OPEN_ROUTES]
UNKNOWN = ("usr_nobody", "a/b", "...", "%00", "\\u0000", "é", "x" * 500, "a:b", "*", "'--", "-")
BODIES: dict[str, Any] = {
    "sendMessage": {"clientMsgId": "x", "content": {"text": "hello"}},
    "editMessage": {"text": "hello"},
    "createAgentTask": {"prompt": "go", "deviceId": "dev_none", "agentType": "demo"},
    "beginSession": {"epoch": "0123456789abcdef", "runtimeId": "rt_1"},
    "changePerson": {"role": "admin"},
    "createInvitation": {},
    "changeSettings": {},
    "confirmMailAddress": {"code": "12345678"},
    "createMailAddress": {"address": "ada@people.example"},
    "createSubscription": {
        "endpoint": "https://fcm.googleapis.com/fcm/send/x",
        "keys": {"p256dh": BrowserKeys().p256dh, "auth": BrowserKeys().auth},
    },
    "createWebhook": {"url": "https://hooks.example/x"},
    "decideApproval": {"decision": "deny", "argsHash": "sha256:x"},
    "changeApprovalRule": {"required": 1},
    "openNotification": {},
    "seeNotification": {},
    "changePassword": {"currentPassword": "wrong password", "newPassword": "a new password"},
    "addPasskey": {"ceremony": "x", "credential": {}},
    "renamePasskey": {"name": "x"},
    "allocateRunner": {},
    "beginIdentity": {"provider": "x"},
    "addTeamMember": {"name": "x", "role": "supervisor"},
    "decideRoute": {"action": "finish"},
    "linkIdentity": {"ceremony": "x", "provider": "x", "state": "x"},
}


NAMED_IN_BODIES = {
    "deviceId": "deviceId",
    "targetId": "targetId",
    "edgeId": "edgeId",
    "replyToMessageId": "messageId",
    "teamId": "teamId",
    "teamMemberId": "teamMemberId",
}
"""What a body may name that is somebody's → which of their ids it is."""

AROUND: dict[tuple[str, str], dict[str, Any]] = {
    ("createAgentTask", "targetId"): {"prompt": "go"},
    ("openChat", "edgeId"): {"type": "thread", "threadId": "thr_1"},
}
"""The rest of a body, where it is another one than usual for what it names."""


def body_of(operation: dict[str, Any]) -> Any:
    """A body that is right in itself: one of ours, else the document's own example."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return content and BODIES.get(operation["operationId"], content.get("example"))


def access_to(method: str, path: str) -> str:
    """Who may use a route; below an Edge, uploads are its device's and all else is people's."""
    template = re.sub(r"(?<!^)([A-Z])", r"_\1", path).lower()
    if path.startswith("/v1/edges/"):
        return "device" if "/mirror/" in path else "viewer"
    return ROUTE_ACCESS[f"{method} {template}"]


def count_nothing(*_: object) -> None:
    """In the place of a limit."""


def places_in(*, edges: bool) -> set[str]:
    """The names of ids in the paths below an Edge, or in all others."""
    paths = [path for _, path, _ in OPERATIONS if path.startswith("/v1/edges/") is edges]
    return {name for path in paths for name in re.findall(r"\{(\w+)\}", path)}


PLACES = places_in(edges=True) | places_in(edges=False)
OF_A_MIRROR = places_in(edges=True) - places_in(edges=False)
"""Ids that are found in one mirror, which is somebody's as a whole."""


def properties_of(schema: dict[str, Any]) -> set[str]:
    """What a body may have."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found = DOCUMENT["components"]["schemas"][name] if name else schema
    several = [each for how in ("anyOf", "oneOf", "allOf") for each in found.get(how, [])]
    return set(found.get("properties", {})).union(*map(properties_of, several))


def list_named() -> list[tuple[str, str, dict[str, Any], str]]:
    """The routes whose body names something that is somebody's, and what it calls that."""
    return [
        (method, path, operation, name)
        for method, path, operation in CLOSED
        for content in [operation.get("requestBody", {}).get("content", {})]
        for name in sorted(properties_of(content.get("application/json", {}).get("schema", {})))
        if name in NAMED_IN_BODIES
    ]


@pytest.mark.asyncio
@pytest.mark.requirement("hub.owners")
async def test_every_route_without_a_token_is_refused(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        await hub.first_admin()
        assert len(CLOSED) == len(OPERATIONS) - sum(method != "HEAD" for method, _ in OPEN_ROUTES)
        for method, path, operation in CLOSED:
            named = re.sub(r"\{\w+\}", "x", path)
            for headers in ({}, {"authorization": "Basic YTpi"}, {"authorization": "Bearer x"}):
                answer = await hub.http.request(
                    method, named, json=body_of(operation), headers=headers
                )
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
            in_address = await hub.http.request(method, f"{named}?access_token=x")
            assert in_address.json()["code"] == "token_in_url"
        for path in ("/v1", "/v1/nothing", "/docs", "/pages"):
            assert (await hub.http.get(path)).status_code == 401


async def add_mail_address(hub: RunningHub, person: HubPerson) -> str:
    """The id of an address that waits for its code; no mail server is needed for that."""
    values: dict[str, Any] = {"target_id": "tgt_mail", "person_id": person.person_id}
    values |= {"channel": "smtp", "shown": "bo@people.example", "sealed": "", "digest": "x"}
    async with hub.hub.services.database.write() as connection:
        await connection.execute(
            insert(notification_targets).values(**values, created_at=1, code_attempts=0)
        )
    return "tgt_mail"


async def add_letter(hub: RunningHub, person: HubPerson, device_id: str) -> None:
    """A relayed request that a device did not answer."""
    values: dict[str, Any] = {"delivery_id": "dlv_dead", "device_id": device_id, "kind": "relay"}
    values |= {"person_id": person.person_id, "payload": "{}", "state": "dead", "attempts": 20}
    until = hub.hub.services.now() + 3_600_000
    async with hub.hub.services.database.write() as connection:
        await connection.execute(
            insert(deliveries).values(**values, created_at=1, next_at=1, expires_at=until)
        )


async def things_of(hub: RunningHub, admin: HubPerson, name: str) -> tuple[HubPerson, Any]:
    """Somebody, and one id of everything that belongs to them."""
    person = await hub.join(admin, name, "admin")
    made = await person.post("/v1/invitations", {})
    passkey_id = f"pky_{name}"
    async with hub.hub.services.database.write() as connection:
        await sign_in_records.add_passkey(
            connection,
            passkey_id=passkey_id,
            person_id=person.person_id,
            credential_id="x",
            public_key="x",
            sign_count=0,
            synced=False,
            name="x",
            created_at=0,
        )
        await connection.execute(
            insert(runners).values(
                runner_id=f"run_{name}",
                person_id=person.person_id,
                keeper_id="x",
                name="x",
                state="released",
                created_at=0,
                started_at=0,
                active_at=0,
            )
        )
    hook = await person.post("/v1/webhooks", BODIES["createWebhook"])
    push = await person.post("/v1/push/subscriptions", BODIES["createSubscription"])
    notice = await person.post("/v1/notifications/test")
    device = AskingDevice(hub.hub.services, person.person_id)
    await device.join()
    await device.ask("act_1")
    approval = (await person.get("/v1/approvals"))["items"][0]
    joined = await hub.join_device(person, "edge_bo")
    assert (await joined.begin_upload()).status_code == 200
    friend = await hub.join(admin, f"Friend of {name}")
    body = {"person": friend.person_id, "role": "viewer", "deviceId": joined.device_id}
    grant = await person.post("/v1/grants", body)
    pairing = await person.post("/v1/me/pairings")
    codes = await hub.ask_to_join("edge_other")
    path = f"/v1/device-authorizations/{codes['user_code']}/decision"
    await person.post(path, {"decision": "confirm"}, status=200)
    wish = await person.post("/v1/friend-requests", {"personId": friend.person_id})
    chat = await person.post("/v1/chats", {"type": "group", "name": "ours"})
    file = {"name": "a.txt", "content": "YQ=="}
    upload = await person.post(f"/v1/chats/{chat['chatId']}/attachments", file)
    content = {"attachments": [upload["attachmentId"]]}
    sent = {"clientMsgId": "one", "contentType": "attachment", "content": content}
    message = await person.post(f"/v1/chats/{chat['chatId']}/messages", sent)
    target = {"name": "here", "deviceId": joined.device_id, "agentType": "demo"}
    made_target = await person.post("/v1/execution-targets", target)
    work = {"prompt": "go", "deviceId": joined.device_id, "agentType": "demo"}
    task = await person.post("/v1/agent-tasks", work, status=202)
    await add_letter(hub, person, joined.device_id)
    desk = TeamDesk(hub, person, joined)
    await desk.create_team()
    await desk.start()
    return person, {
        **dict.fromkeys(PLACES, "x"),
        "edgeId": "edge_bo",
        "grantId": grant["grantId"],
        "pairingId": pairing["pairingId"],
        "userCode": codes["user_code"],
        "requestId": wish["requestId"],
        "chatId": chat["chatId"],
        "memberId": person.person_id,
        "messageId": message["messageId"],
        "attachmentId": upload["attachmentId"],
        "targetId": made_target["targetId"],
        "taskId": task["taskId"],
        "teamId": desk.team_id,
        "teamMemberId": desk.members["ann"],
        "teamRunId": desk.run_id,
        "assignmentId": await desk.delegate(),
        "deliveryId": "dlv_dead",
        "runnerId": f"run_{name}",
        "passkeyId": passkey_id,
        "methodId": passkey_id,
        "webhookId": hook["webhookId"],
        "subscriptionId": push["subscriptionId"],
        "notificationId": notice["notificationId"],
        "addressId": await add_mail_address(hub, person),
        "approvalId": approval["approvalId"],
        "deviceId": approval["deviceId"],
        "personId": person.person_id,
        "sessionId": person.session_id,
        "invitationId": made["invitationId"],
    }


@pytest.mark.asyncio
@pytest.mark.requirement("hub.owners")
@pytest.mark.parametrize("role", ROLES)
async def test_what_belongs_to_somebody_else_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
):
    # Some requests are counted by person, and here one person sends a lot of them.
    monkeypatch.setattr(RequestRates, "spend", count_nothing)
    await walk_as_somebody_else(tmp_path, role)


@pytest.mark.asyncio
@pytest.mark.parametrize("module", [link_tasks, approval_records])
async def test_it_would_be_found_by_queries_without_an_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType
):
    def let_anybody(*_: object, **__: object) -> ColumnElement[bool]:
        return true()

    monkeypatch.setattr(RequestRates, "spend", count_nothing)
    monkeypatch.setattr(module, "may_access", let_anybody)
    with pytest.raises(AssertionError):
        await walk_as_somebody_else(tmp_path, "member")


async def walk_as_somebody_else(folder: Path, role: str) -> None:
    """Ask for everything that is another person's, by every route."""
    async with running_hub(folder) as hub:
        ada = await hub.first_admin()
        _, ids = await things_of(hub, ada, "Bo")
        eve = await hub.join(ada, "Eve", role)
        stranger = await hub.join_device(await hub.join(ada, "Mal"), "edge_mal")
        own = {} if role == "viewer" else {"chatId": await create_group(eve)}
        walked = 0
        for method, path, operation in CLOSED:
            if "{" not in path:
                continue
            walked += 1
            if access_to(method, path) == "device":
                query = "?session=1" if path.startswith("/v1/edges/") else ""
                answer = await stranger.request(
                    method, f"{path.format(**ids)}{query}", body_of(operation)
                )
                assert answer.status_code == 404, (method, path, answer.text)
                continue
            admins_may = path.startswith("/v1/people/") and role == "admin"
            answer = await eve.request(method, path.format(**ids), body_of(operation))
            needed = access_to(method, path)
            if ROLES.index(role) > ROLES.index(needed):
                assert answer.json()["code"] == "insufficient_role", (method, path, answer.text)
                continue
            assert answer.status_code == (200 if admins_may else 404), (method, path, answer.text)
            if "{chatId}/" in path and path.count("{") > 1:
                # Somebody else's message is not found in a chat of one's own either.
                in_own = path.format(**{**ids, **own})
                astray = await eve.request(method, in_own, body_of(operation))
                assert astray.status_code == 404, (method, in_own, astray.text)
            # Below an Edge, all routes have one answer for what is nobody's.
            for unknown in UNKNOWN[:2] if path.startswith("/v1/edges/") else UNKNOWN:
                ids_only = path.replace("{emoji}", "x")
                named = re.sub(r"\{\w+\}", quote(unknown, safe=""), ids_only)
                missing = await eve.request(method, named, body_of(operation))
                assert missing.status_code == 404, (method, named, missing.text)
                if not admins_may:
                    # Somebody else's id and nobody's cannot be told apart.
                    assert missing.json()["code"] == answer.json()["code"]
        assert walked == sum("{" in path for _, path, _ in CLOSED)
        # Each id is one that there is, but for what is found in a mirror alone.
        assert {name for name, value in ids.items() if value == "x"} <= {*OF_A_MIRROR, "emoji"}


@pytest.mark.asyncio
@pytest.mark.requirement("hub.owners")
async def test_what_a_body_names_of_somebody_else_is_not_found(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        _, ids = await things_of(hub, ada, "Bo")
        eve = await hub.join(ada, "Eve", "admin")
        own = {**ids, "chatId": await create_group(eve)}
        for method, path, operation, name in list_named():
            usual: Any = AROUND.get((operation["operationId"], name), body_of(operation))
            codes: list[Any] = []
            for named in (ids[NAMED_IN_BODIES[name]], "nobodys"):
                answer = await eve.request(method, path.format(**own), {**usual, name: named})
                assert answer.status_code == 404, (method, path, name, answer.text)
                codes.append(answer.json()["code"])
            assert codes[0] == codes[1]


def fill_payload(payload: type[FramePayload], ids: dict[str, Any]) -> FramePayload:
    """The payload of a frame that names what is somebody else's wherever it names something."""
    task_id, delivery_id, edge_id = ids["taskId"], ids["deliveryId"], ids["edgeId"]
    known: dict[str, Any] = {"task_id": task_id, "tasks": [task_id], "delivery_id": delivery_id}
    known |= {"command_id": delivery_id, "device_id": ids["deviceId"], "status": 200}
    known |= {"edge_id": edge_id, "producer": edge_id, "epoch": "0" * 16, "headers": {}}
    known |= {"agents": ["other"], "version": "9", "usage": {}, "error": {"code": "x"}}
    known |= {"result_summary": "x", "from_seq": 1, "to_seq": 2, "edge_run_id": "run_x"}
    fields = [field for field in msgspec.structs.fields(payload) if field.name in known]
    required = {field.name for field in msgspec.structs.fields(payload) if field.required}
    assert required <= {field.name for field in fields}, payload
    return payload(**{field.name: known[field.name] for field in fields})


@pytest.mark.asyncio
@pytest.mark.requirement("hub.owners")
async def test_a_device_changes_nothing_of_somebody_else_by_any_frame(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        bo, ids = await things_of(hub, ada, "Bo")
        mal = await hub.join(ada, "Mal")
        stranger = await hub.join_device(mal, "edge_mal")
        services, frames = hub.hub.services, list_frames("edge_to_hub")
        tables = (agent_tasks, deliveries, devices, edges)

        async def read_rows() -> list[list[Any]]:
            async with services.database.read() as connection:
                found = [await connection.execute(select(table)) for table in tables]
            return [[row for row in rows if mal.person_id not in row] for rows in found]

        before = await read_rows()
        async with services.database.read() as connection:
            device = await find_edge_device(connection, stranger.device_id, mal.person_id)
        assert device is not None
        for name, payload in frames.items():
            await hub.hub.links.link.take_frame(device, name, fill_payload(payload, ids))
        assert await read_rows() == before
        # The same from Bo's own device is taken.
        async with services.database.read() as connection:
            query = select(agent_tasks.c.device_id).where(agent_tasks.c.task_id == ids["taskId"])
            own_id = (await connection.execute(query)).scalar_one()
            own = await find_edge_device(connection, own_id, bo.person_id)
        assert own is not None
        for name, payload in frames.items():
            await hub.hub.links.link.take_frame(own, name, fill_payload(payload, ids))
        assert await read_rows() != before


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
                needed = access_to(method, path)
                if needed == "device":
                    answer = await person.request(method, re.sub(r"\{\w+\}", "x", path))
                    assert answer.json()["code"] == "device_only"
                    continue
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


EXAMPLES = count_trials(full=8, share=3)
"""Lists of four cases for each route and way to make them; eight come to the 5,000 of R13."""


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
        @settings(QUIET, max_examples=EXAMPLES)
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


@pytest.mark.nightly
@pytest.mark.requirement("hub.openapi")
@pytest.mark.timeout(TRIAL_SECONDS)
def test_every_answer_is_one_that_the_document_lists(tmp_path: Path):
    document = build_openapi()
    del document["security"], document["components"]["securitySchemes"]
    schema: Any = schemathesis.openapi.from_dict(document)
    schema.config.checks.negative_data_rejection.expected_statuses = REFUSALS
    with hub_process(tmp_path) as hub:
        caller = Caller(hub)
        # What is read from mirrors is the Edge's own, which has the same test; uploads are msgpack.
        operations: list[Any] = [
            operation
            for operation in (result.ok() for result in schema.get_all_operations())
            if "mirrors" not in operation.definition.raw["tags"]
            and "/mirror/" not in operation.path
        ]
        for operation in operations:
            caller.attack(operation, GenerationMode.POSITIVE, CHECKS)
            if operation.query or operation.body:
                caller.attack(operation, GenerationMode.NEGATIVE, [*CHECKS, REJECTED])
        assert caller.statuses.total() >= count_trials(full=5_000, share=500)
        assert {200, 201, 204, 400, 401, 404} <= caller.statuses.keys()
        assert httpx.get(f"{hub.url}/v1/health", trust_env=False).status_code == 200
        assert hub.failures() == []
