"""The OpenAPI document against the Edge that it describes: thousands of requests made from it, with
every answer held to what the document says.
"""

import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis import checks as common_checks
from schemathesis.specs.openapi import checks as openapi_checks

from factwire.edge.edge_app import ROUTES, build_openapi
from factwire.serving.openapi import public_path
from tests.edge.edges import TOKEN, running_edge
from tests.edge.served_edges import ServedEdge, served_edge
from tests.edge.things import made_things

CHECKS: list[Any] = [
    cast("Any", common_checks).not_a_server_error,
    cast("Any", openapi_checks).response_schema_conformance,
    cast("Any", openapi_checks).content_type_conformance,
    cast("Any", openapi_checks).status_code_conformance,
]
REJECTED: Any = cast("Any", openapi_checks).negative_data_rejection
AT_ONCE = 4
POSITIVE_ROUNDS = 11
NEGATIVE_ROUNDS = 10
STEPS = 2_800
REFUSALS = ["400", "403", "404", "405", "409", "410", "413", "414", "415", "422", "429", "431"]

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


def _document() -> dict[str, Any]:
    """The document without the token, which is another test's, and without the longest texts,
    which only cost time here.
    """
    document = build_openapi()
    del document["security"], document["components"]["securitySchemes"]
    for schema in document["components"]["schemas"].values():
        for member in schema.get("properties", {}).values():
            if member.get("maxLength", 0) > 1_000:
                del member["maxLength"]
    return document


class Caller:
    """Sends cases, holds each answer to the document, and counts."""

    def __init__(self, edge: ServedEdge) -> None:
        self.url = edge.url
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["authorization"] = f"Bearer {TOKEN}"
        self.statuses: Counter[int] = Counter()

    def call(self, case: Any, checks: Iterable[Any] = CHECKS) -> Any:
        answer = case.call(base_url=self.url, session=self.session, timeout=280)
        self.statuses[answer.status_code] += 1
        case.validate_response(answer, checks=list(checks))
        return answer


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory):
    with served_edge(tmp_path_factory.mktemp("served")) as serving:
        yield serving


@pytest.fixture
def caller(edge: ServedEdge) -> Caller:
    return Caller(edge)


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Any]]:
    """Requests that the document allows, by the id of their operation."""
    found: dict[str, list[Any]] = {}
    for operation in _operations():
        name = operation.definition.raw["operationId"]
        takes = bool(operation.path_parameters or operation.query or operation.body)
        strategy = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        found[name] = list(_draw_values(strategy, POSITIVE_ROUNDS if takes else 1))
    return found


def _draw_values(strategy: Any, rounds: int) -> list[Any]:
    kept: list[Any] = []

    @given(drawn=st.lists(strategy, min_size=AT_ONCE, max_size=AT_ONCE))
    @settings(QUIET, max_examples=rounds)
    def draw(drawn: list[Any]) -> None:
        kept.extend(drawn)

    draw()
    return kept


def _under(case: Any, ids: dict[str, str], body: Any = None) -> Any:
    """The same request under ids that exist, and of which nothing is waited for."""
    known = {name: quote(value, safe="") for name, value in ids.items()}
    return case.operation.Case(
        path_parameters={**case.path_parameters, **_some(known, case.path_parameters)},
        query={name: value for name, value in case.query.items() if name != "wait"},
        headers=dict(case.headers),
        body=case.body if body is None else body,
        media_type=case.media_type,
    )


def _some(known: dict[str, str], wanted: Iterable[str]) -> dict[str, str]:
    return {name: known[name] for name in wanted if name in known}


def _schema() -> Any:
    schema = schemathesis.openapi.from_dict(_document())
    schema.config.checks.negative_data_rejection.expected_statuses = REFUSALS
    return schema


def _operations() -> list[Any]:
    return [result.ok() for result in _schema().get_all_operations()]


@pytest.mark.requirement("edge.rest.openapi.answers")
@pytest.mark.timeout(600)
def test_every_answer_to_what_the_document_allows_is_one_that_it_documents(
    edge: ServedEdge, caller: Caller, cases: dict[str, list[Any]]
):
    things = made_things(edge.url)
    ids = {name: known[0] for name, known in things.ids.items()}
    for name, drawn in cases.items():
        for index, case in enumerate(drawn):
            keeps = name.startswith(("delete", "archive"))
            caller.call(case if keeps or index % 2 else _under(case, ids))
    # What was drawn may name no agent that is there.
    caller.call(_under(cases["createRun"][0], {}, {"agentId": "demo", "prompt": "help"}))
    assert caller.statuses.total() >= 2_000
    assert {200, 201, 202, 400, 404, 409} <= caller.statuses.keys()
    assert edge.is_alive
    assert edge.failures() == []


@pytest.mark.requirement("edge.rest.openapi.negative")
@pytest.mark.timeout(600)
def test_what_the_document_does_not_allow_is_refused(edge: ServedEdge, caller: Caller):
    for operation in _operations():
        if not operation.query and not operation.body:
            # Whatever stands in a path is an id, and whatever is not one is unknown.
            continue
        cases = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

        @given(drawn=st.lists(cases, min_size=1, max_size=AT_ONCE))
        @settings(QUIET, max_examples=NEGATIVE_ROUNDS)
        def attack(drawn: list[Any]) -> None:
            for case in drawn:
                caller.call(case, [*CHECKS, REJECTED])

        attack()
    assert caller.statuses.total() >= 500
    assert edge.is_alive
    assert edge.failures() == []


class Journey:
    """Operations one after the other, each under ids that earlier ones gave, as the links of the
    document say.
    """

    def __init__(self, caller: Caller, cases: dict[str, list[Any]], chance: random.Random) -> None:
        self._caller = caller
        self._cases = cases
        self._chance = chance
        self._ids: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=12))
        self._bodies: dict[str, deque[dict[str, Any]]] = defaultdict(lambda: deque(maxlen=12))

    def step(self) -> None:
        name = self._chance.choice(list(self._cases))
        case = self._chance.choice(self._cases[name])
        answer = self._caller.call(_under(case, self._drawn_ids(), self._body(name, case)))
        response = case.operation.definition.raw["responses"].get(str(answer.status_code), {})
        for link in response.get("links", {}).values():
            self._follow(link, answer.json())

    def _drawn_ids(self) -> dict[str, str]:
        return {name: self._chance.choice(list(known)) for name, known in self._ids.items()}

    def _body(self, name: str, case: Any) -> Any:
        """The body that a link gives, or the case's own with ids that exist."""
        if self._bodies[name]:
            decision = self._chance.choice(["allow", "deny"])
            return {**self._chance.choice(list(self._bodies[name])), "decision": decision}
        if name in ("createRun", "postMessage"):
            prompt = self._chance.choice(["help", "approve", "files"])
            text = {"prompt": prompt} if name == "createRun" else {"text": prompt}
            return {"agentId": "demo", **text}
        body: Any = case.body
        return {**body, **_some(self._drawn_ids(), body)} if _is_object(body) else None

    def _follow(self, link: dict[str, Any], body: Any) -> None:
        for name, place in link.get("parameters", {}).items():
            if (value := _at(body, place)) is not None:
                self._ids[name].append(value)
        values = {name: _at(body, place) for name, place in link.get("requestBody", {}).items()}
        if values and None not in values.values():
            self._bodies[link["operationId"]].append(values)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _at(body: Any, place: str) -> Any:
    """What a link's expression leads to, None where there is nothing."""
    pointer = place.removeprefix("$response.body#/")
    if pointer == place:
        return place
    for part in pointer.split("/"):
        try:
            body = body[int(part) if part.isdigit() else part]
        except (KeyError, IndexError):
            return None
    return body


@pytest.mark.requirement("edge.rest.openapi.stateful")
@pytest.mark.timeout(600)
def test_ids_that_were_given_are_used_in_every_order_without_surprise(
    edge: ServedEdge, caller: Caller, cases: dict[str, list[Any]]
):
    journey = Journey(caller, cases, random.Random(13))
    for _ in range(STEPS):
        journey.step()
    assert {200, 201, 202, 204} <= caller.statuses.keys()
    assert edge.is_alive
    assert edge.failures() == []


@pytest.mark.requirement("edge.rest.openapi.document")
def test_every_handler_is_described_under_a_name_and_in_a_sentence_of_its_own():
    document = build_openapi()
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) == len(ROUTES)
    assert {public_path(path) for handler in ROUTES for path in handler.paths} == {
        path for path, _, _ in operations
    }
    names = [operation["operationId"] for _, _, operation in operations]
    assert len(set(names)) == len(names)
    for _, _, operation in operations:
        assert operation["description"].endswith(".")
        assert operation["tags"]
        [answered, *_] = [status for status in operation["responses"] if status.startswith("2")]
        content = operation["responses"][answered].get("content", {})
        assert (content == {}) == (answered == "204")


@pytest.mark.requirement("edge.rest.openapi.document")
def test_the_document_refers_to_nothing_that_it_does_not_have():
    document = build_openapi()
    known = {
        f"#/components/{kind}/{name}"
        for kind, things in document["components"].items()
        for name in things
    }
    assert set(_refs(document)) <= known
    linked = {
        link["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    }
    assert linked <= {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    }


def _refs(value: Any) -> Iterable[str]:
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _refs(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key == "$ref":
                yield item
            else:
                yield from _refs(item)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.rest.openapi.document")
async def test_a_running_edge_tells_the_same_document_each_time(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for _ in range(2):
            assert await edge.get("/openapi.json") == build_openapi()


@pytest.mark.requirement("edge.rest.openapi.examples")
def test_every_operation_has_examples_that_its_schemas_allow_and_names_its_headers():
    document = build_openapi()
    problem = document["components"]["responses"]["Problem"]
    assert problem["headers"].keys() == {"X-Trace-Id", "Retry-After"}
    own = {"get": {"X-As-Of"}, "post": {"Idempotency-Replayed"}}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            [success] = [
                answer for status, answer in operation["responses"].items() if status[0] == "2"
            ]
            assert success["headers"].keys() == {"X-Trace-Id", *own.get(method, ())}, path
            keys = [each for each in operation["parameters"] if each["name"] == "Idempotency-Key"]
            assert len(keys) == (method == "post"), path
            for body in (operation.get("requestBody", {}), success):
                content = body.get("content", {}).get("application/json")
                if content is not None:
                    schema = {**content["schema"], "components": document["components"]}
                    validator: Any = Draft202012Validator(schema)
                    validator.validate(content["example"])
