"""Secrets that something beside them names: entries, headers, arguments and environments."""

from typing import Any

import pytest

from factwire.facts import inspect_fact, read_fact, redact_fact, redact_value
from factwire.facts.redaction import Redactor
from tests.facts.samples import wire

SECRET = "aB3dE6gH" + "9kL2mN5pQ8"
R = "[redacted]"

NAMED: list[tuple[Any, Any]] = [
    ({"name": "API_KEY", "value": SECRET}, {"name": "API_KEY", "value": R}),
    ({"key": "password", "val": "hunter"}, {"key": "password", "val": R}),
    ({"name": "my api key", "value": SECRET}, {"name": "my api key", "value": R}),
    ({"header": "Authorization", "values": [SECRET]}, {"header": "Authorization", "values": R}),
    ({"k": "token", "v": SECRET}, {"k": "token", "v": R}),
    ([["authorization", SECRET]], [["authorization", R]]),
    ([["authorization", f"Bearer {SECRET}"]], [["authorization", R]]),
    ([("x-api-key", SECRET)], [("x-api-key", R)]),
    (["Host", "a", "X-Api-Key", SECRET, "Accept"], ["Host", "a", "X-Api-Key", R, "Accept"]),
    (["run", "--api-key", SECRET], ["run", "--api-key", R]),
    (["--password", "hunter"], ["--password", R]),
    (["A_TOKEN=" + SECRET], ["A_TOKEN=" + R]),
    ([f"--token={SECRET}"], [f"--token={R}"]),
    ({"https://x.org/?token=" + SECRET: 1}, {R: 1}),
    ({"e": [{"name": "DB_PASSWD", "value": "a"}]}, {"e": [{"name": "DB_PASSWD", "value": R}]}),
]  # fmt: skip

PLAIN: list[Any] = [
    {"name": "tokenCount", "value": "12"},
    {"name": "Explain what a token is and why", "value": "A token is a word."},
    {"name": "path", "value": "src/main.py"},
    {"name": "password", "value": ""},
    {"name": "token", "value": 7},
    {"name": "api_key", "type": "string", "description": "the key"},
    ["password", "token", "secret"],
    ["token", "string"],
    ["--token", "--verbose"],
    ["--token", "$TOKEN"],
    ["--token-file", "a1b2c3d4.txt"],
    ["inputTokens", "a1b2c3d4"],
    [["accept", "application/json"]],
]


@pytest.mark.requirement("redaction.named")
@pytest.mark.parametrize(("value", "clean"), NAMED)
def test_a_value_that_its_neighbour_names_a_secret_is_replaced(value: Any, clean: Any):
    found, findings = redact_value({"a": value})
    assert (found, len(findings)) == ({"a": clean}, len(findings) or -1)
    assert redact_value(found) == (found, [])
    issues = inspect_fact(wire("run.status", 1, payload={"a": value}, colour=value))
    assert {issue.code for issue in issues} == {"secret_leak_risk"}
    assert len(issues) == 2 * len(findings)


@pytest.mark.requirement("redaction.named")
@pytest.mark.parametrize("value", PLAIN)
def test_other_entries_headers_and_arguments_stay_as_they_are(value: Any):
    assert redact_value({"a": value}) == ({"a": value}, [])


@pytest.mark.requirement("redaction.named")
def test_a_text_that_was_harmless_before_is_still_searched_beside_a_name():
    redactor = Redactor()
    for number, payload in enumerate(({"value": SECRET}, {"name": "API_KEY"}), 1):
        redactor.feed(read_fact(wire("run.status", number, payload=payload)))
    named = read_fact(wire("run.status", 3, payload={"name": "API_KEY", "value": SECRET}))
    assert redactor.feed(named).fact == redact_fact(named).fact
    assert redactor.feed(named).fact.payload == {"name": "API_KEY", "value": R}
