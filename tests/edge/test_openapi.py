"""The OpenAPI document against the Edge that it describes: thousands of requests made from it, with
every answer held to what the document says.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from factwire.edge.app import ROUTES, openapi
from factwire.edge.openapi import spelled
from tests.edge.edges import TOKEN, running_edge
from tests.edge.served_edges import ServedEdge, served_edge
from tests.edge.things import Things, made_things

CHECKS = [
    not_a_server_error,
    response_schema_conformance,
    content_type_conformance,
    status_code_conformance,
]
AT_ONCE = 4
POSITIVE_ROUNDS = 11
NEGATIVE_ROUNDS = 5
JOURNEYS = 75
STEPS = 40
REFUSALS = ["400", "403", "404", "405", "409", "410", "413", "414", "415", "422", "429", "431"]

QUIET = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def _document() -> dict[str, Any]:
    """The document without the token, which is another test's, and without the longest texts,
    which only cost time here.
    """
    document = openapi()
    del document["security"], document["components"]["securitySchemes"]
    for schema in document["components"]["schemas"].values():
        for member in schema.get("properties", {}).values():
            if member.get("maxLength", 0) > 1_000:
                del member["maxLength"]
    return document


class Caller:
    """Sends cases, holds each answer to the document, and counts."""

    def __init__(self, edge: ServedEdge, things: Things) -> None:
        self.url = edge.url
        self._things = things
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["authorization"] = f"Bearer {TOKEN}"
        self.statuses: Counter[int] = Counter()

    def call(self, case: Any, checks: Iterable[Any], which: int | None = None) -> Any:
        """Send a case; with a number, under ids that exist."""
        if which is not None:
            known = self._things.path_parameters(case.operation.label, which)
            case.path_parameters.update(
                {name: value for name, value in known.items() if name in case.path_parameters}
            )
        answer = case.call(base_url=self.url, session=self.session, timeout=20)
        self.statuses[answer.status_code] += 1
        case.validate_response(answer, checks=list(checks))
        return answer


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory):
    with served_edge(tmp_path_factory.mktemp("served")) as serving:
        yield serving


@pytest.fixture
def caller(edge: ServedEdge) -> Caller:
    return Caller(edge, made_things(edge.url))


def _schema() -> Any:
    schema = schemathesis.openapi.from_dict(_document())
    schema.config.checks.negative_data_rejection.expected_statuses = REFUSALS
    return schema


def _operations() -> list[Any]:
    return [result.ok() for result in _schema().get_all_operations()]


@pytest.mark.requirement("edge.rest.openapi.answers")
@pytest.mark.timeout(180)
def test_every_answer_to_what_the_document_allows_is_one_that_it_documents(
    edge: ServedEdge, caller: Caller
):
    for operation in _operations():
        cases = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        which = st.one_of(st.none(), st.integers(0, 1_000))
        rounds = POSITIVE_ROUNDS if operation.path_parameters or operation.query else 3

        @given(drawn=st.lists(st.tuples(cases, which), min_size=AT_ONCE, max_size=AT_ONCE))
        @settings(QUIET, max_examples=rounds)
        def attack(drawn: list[tuple[Any, int | None]]) -> None:
            for case, number in drawn:
                caller.call(case, CHECKS, number)

        attack()
    assert caller.statuses.total() >= 2_000
    assert {200, 201, 202, 400, 404, 409} <= caller.statuses.keys()
    assert edge.is_alive
    assert edge.failures() == []


@pytest.mark.requirement("edge.rest.openapi.negative")
@pytest.mark.timeout(180)
def test_what_the_document_does_not_allow_is_refused(edge: ServedEdge, caller: Caller):
    for operation in _operations():
        if not operation.query and not operation.body:
            # Whatever stands in a path is an id, and whatever is not one is unknown.
            continue
        cases = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

        @given(drawn=st.lists(cases, min_size=AT_ONCE, max_size=AT_ONCE))
        @settings(QUIET, max_examples=NEGATIVE_ROUNDS)
        def attack(drawn: list[Any]) -> None:
            for case in drawn:
                caller.call(case, [*CHECKS, negative_data_rejection])

        attack()
    assert caller.statuses.total() >= 500
    assert edge.is_alive
    assert edge.failures() == []


@pytest.mark.requirement("edge.rest.openapi.stateful")
@pytest.mark.timeout(180)
def test_ids_that_were_given_are_used_in_every_order_without_surprise(
    edge: ServedEdge, caller: Caller
):
    class Journey(_schema().as_state_machine()):  # type: ignore[misc]
        """Operations one after the other, each under ids that an earlier one gave."""

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"base_url": caller.url, "session": caller.session, "timeout": 20}

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            caller.statuses[response.status_code] += 1
            case.validate_response(response, checks=CHECKS)

    journeys = settings(QUIET, max_examples=JOURNEYS, stateful_step_count=STEPS)
    run_state_machine_as_test(Journey, settings=journeys)
    assert caller.statuses.total() >= 2_500
    assert {200, 201, 202, 204} <= caller.statuses.keys()
    assert edge.is_alive
    assert edge.failures() == []


@pytest.mark.requirement("edge.rest.openapi.document")
def test_every_handler_is_described_under_a_name_and_in_a_sentence_of_its_own():
    document = openapi()
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) == len(ROUTES)
    assert {spelled(path) for handler in ROUTES for path in handler.paths} == {
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
    document = openapi()
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
        for item in value:
            yield from _refs(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item
            else:
                yield from _refs(item)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.rest.openapi.document")
async def test_a_running_edge_tells_the_same_document_each_time(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for _ in range(2):
            assert await edge.get("/openapi.json") == openapi()
