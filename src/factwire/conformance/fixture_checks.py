"""The fixtures that come with Factwire, and what each of them proves of a projection.

A fixture is one JSON document in the folder `fixtures`. A projection shows exactly what it expects;
the read model restores the first screen; replay repeats nothing; no ref is lost; and nothing is
guessed: other words in the same facts change no state. Everything is looked up by name in the JSON
of a state; a root that an implementation lacks counts as empty, so that the difference is reported
where it matters.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final, cast

import msgspec

from factwire.conformance.account_checks import (
    ACCOUNT_REQUIREMENTS,
    REFS,
    ScreenDifference,
    find_differences_shown,
    missing_refs,
    object_of,
    objects_of,
    rows_of,
)
from factwire.conformance.case import Case, Finding, Level, Reducer, Wire
from factwire.conformance.reducers import call_reducer
from factwire.facts import (
    Fixture,
    decode_json,
    inspect_fixture,
    inspect_stream,
    is_valid,
    validate_fixture,
)

_FIXTURE_FOLDER: Final = files("factwire.conformance") / "fixtures"


def fixtures() -> tuple[Fixture, ...]:
    """Every fixture, by name."""
    return tuple(fixture(name) for name in fixture_names())


@cache
def fixture(name: str) -> Fixture:
    """The fixture of this name; `KeyError` lists those that there are."""
    if name not in fixture_names():
        raise KeyError(f"expected one of {', '.join(fixture_names())}, got {name!r}")
    text = _FIXTURE_FOLDER.joinpath(f"{name}.json").read_bytes()
    return validate_fixture(cast("dict[str, Any]", decode_json(text)), "facts")


@cache
def fixture_names() -> tuple[str, ...]:
    """The names of all fixtures, in order."""
    found = (path.name for path in _FIXTURE_FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in found if name.endswith(".json")))


def read_figures(document: Wire) -> Wire:
    """Status, counts, coding, subagents and diagnostic codes of a state, named as in a fixture."""
    messages = rows_of(document.get("messages"))
    return {
        "status": object_of(document.get("runtime")).get("status"),
        "messagePartCount": sum(len(rows_of(message.get("parts"))) for message in messages),
        "timelineEntryCount": len(rows_of(document.get("timeline"))),
        "graphNodeCount": len(object_of(object_of(document.get("graph")).get("nodes"))),
        "pendingActionCount": len(pending_actions(document)),
        "artifactCount": len(object_of(document.get("artifacts"))),
        "evidenceCount": len(object_of(object_of(document.get("evidence")).get("items"))),
        "coding": _summarize_coding(document),
        "subagents": _subagents(document),
        "diagnostics": _codes(document),
    }


def read_states(document: Wire) -> Wire:
    """What tools, actions, tasks and artifacts are in: what prose must never decide."""
    return {
        "tools": _field_by_key(document.get("tools"), "state"),
        "actions": _field_by_key(document.get("actions"), "status"),
        "decisions": _field_by_key(document.get("actions"), "decision"),
        "tasks": _field_by_key(document.get("tasks"), "status"),
        "artifacts": _field_by_key(document.get("artifacts"), "kind"),
    }


def screen_of_state(document: Wire) -> Wire:
    """What a first screen shows of a state."""
    runtime = object_of(document.get("runtime"))
    outcome = {
        "status": runtime.get("latestTurnStatus"),
        "failureCategory": runtime.get("failureCategory"),
        "recoveryHint": runtime.get("recoveryHint"),
    }
    is_over = outcome["status"] in ("completed", "failed", "canceled")
    return {
        "status": runtime.get("status"),
        "activeTurnId": runtime.get("activeTurnId"),
        "lastOutcome": outcome if is_over else None,
        "pendingActions": pending_actions(document),
        "toolCalls": _field_by_key(document.get("tools"), "state"),
        "queuedTurns": _ids(object_of(document.get("queue")).get("turns"), "queuedTurnId"),
        "diagnostics": _codes(document),
        "eventCursor": object_of(document.get("hydration")).get("cursor"),
    }


def screen_of_read_model(model: Wire) -> Wire:
    """What a read model says of the same."""
    outcome = object_of(model.get("lastOutcome"))
    calls = {
        str(row.get("toolCallId")): row.get("state") for row in rows_of(model.get("toolCalls"))
    }
    fields = ("status", "failureCategory", "recoveryHint")
    return {
        "status": model.get("status"),
        "activeTurnId": model.get("activeTurnId"),
        "lastOutcome": {name: outcome.get(name) for name in fields} if outcome else None,
        "pendingActions": _ids(model.get("pendingActions"), "actionId"),
        "toolCalls": calls,
        "queuedTurns": _ids(model.get("queuedTurns"), "queuedTurnId"),
        "diagnostics": sorted({str(row.get("code")) for row in rows_of(model.get("diagnostics"))}),
        "eventCursor": model.get("eventCursor"),
    }


def pending_actions(document: Wire) -> list[str]:
    """The ids of open actions, in order."""
    statuses = _field_by_key(document.get("actions"), "status")
    return [key for key, status in statuses.items() if status == "pending"]


def _summarize_coding(document: Wire) -> Wire:
    coding = object_of(document.get("coding"))
    processes = object_of(document.get("processes"))
    return {
        "files": {
            path: {"reads": file.get("reads"), "changes": file.get("changes")}
            for path, file in objects_of(coding.get("files")).items()
        },
        "patches": _field_by_key(coding.get("patches"), "status"),
        "tests": _field_by_key(coding.get("tests"), "status"),
        "commands": {
            key: row.get("status")
            for key, row in objects_of(processes).items()
            if row.get("kind") == "command"
        },
    }


def _subagents(document: Wire) -> Wire:
    subagents, team = (
        object_of(document.get("subagents")),
        object_of(document.get("teamWorkbench")),
    )
    return {
        "threads": _field_by_key(subagents.get("threads"), "status"),
        "active": subagents.get("activeThreadIds"),
        "handoffs": _field_by_key(team.get("handoffEvents"), "status"),
        "reviews": _field_by_key(object_of(document.get("evidence")).get("reviews"), "verdict"),
    }


def _codes(document: Wire) -> list[str]:
    items = _field_by_key(object_of(document.get("diagnostics")).get("items"), "code")
    return sorted({str(code) for code in items.values()})


def _field_by_key(rows: object, field: str) -> dict[str, Any]:
    return {key: row.get(field) for key, row in objects_of(rows).items()}


def _ids(rows: object, field: str) -> list[str]:
    return [str(row.get(field)) for row in rows_of(rows)]


_PROSE: Final = ("title", "detail")
_PROSE_IN_PAYLOAD: Final = ("delta", "message", "prompt", "reason", "summary", "text", "title")
_OTHER_WORDS: Final = "Approved by the user. The tool succeeded and wrote report.pdf; it failed."

Check = Callable[[Fixture, Reducer], Iterator[str]]


def fixture_cases() -> tuple[Case, ...]:
    """Every fixture as cases: one for its facts, one for the states that they come to."""
    return tuple(case for fixture in fixtures() for case in _cases_of(fixture))


def fixture_findings(fixture: Fixture, reduce: Reducer) -> Iterator[Finding]:
    """Everything in which a reducer falls short of a fixture."""
    for requirement, check in _CHECKS.items():
        for problem in check(fixture, reduce):
            yield _fixture_finding(requirement, "projection", f"{fixture.id}: {problem}")
    for difference in find_unshown(fixture, reduce):
        if difference.requirement != REFS:
            message = f"{fixture.id}: {difference.message}"
            finding = _fixture_finding(difference.requirement, "projection", message)
            yield msgspec.structs.replace(finding, fact_id=difference.fact_id)


def find_unshown(fixture: Fixture, reduce: Reducer) -> list[ScreenDifference]:
    """What the facts of a fixture state and a reducer's state does not show. A fixture that goes
    on after a read model is left out: what happened before is not among its facts.
    """
    if fixture.initial_read_model is not None:
        return []
    return list(find_differences_shown(fixture.events, _reduce_fixture(fixture, reduce)))


def check_facts(fixture: Fixture) -> Iterator[Finding]:
    """Everything that is wrong with the facts of a fixture."""
    issues = inspect_fixture(msgspec.to_builtins(fixture), "facts")
    for issue in issues if not is_valid(issues) else ():
        yield _fixture_finding(
            "stream.schema", "facts", f"{fixture.id}: {issue.message}", issue.path
        )


def check_expected(fixture: Fixture, reduce: Reducer) -> Iterator[str]:
    """Status, counts and codes are exact; what a fixture does not state is not compared."""
    shown = read_figures(_reduce_fixture(fixture, reduce))
    shown["diagnostics"] = sorted({*shown["diagnostics"], *_stream_codes(fixture)})
    for name, wanted in cast("Wire", msgspec.to_builtins(fixture.expected)).items():
        if wanted is not None and shown[name] != wanted:
            yield f"expected {name} {wanted}, got {shown[name]}"


def check_first_screen(fixture: Fixture, reduce: Reducer) -> Iterator[str]:
    """A read model alone shows what it says; where the stream came as far, it shows the same."""
    model = fixture.final_read_model
    if model is None:
        return
    expected_screen, restored = (
        screen_of_read_model(model),
        screen_of_state(call_reducer(reduce, [], model)),
    )
    yield from _differences("restored from the read model", expected_screen, restored)
    shown = screen_of_state(_reduce_fixture(fixture, reduce))
    if shown["eventCursor"] == expected_screen["eventCursor"]:
        yield from _differences("projected from the facts", expected_screen, shown)


def check_replay(fixture: Fixture, reduce: Reducer) -> Iterator[str]:
    """Facts that come twice, at once or all over again, change nothing."""
    once = _reduce_fixture(fixture, reduce)
    again = _reduce_events(fixture, reduce, [*fixture.events, *fixture.events])
    doubled = [event for event in fixture.events for _ in range(2)]
    for name, state in (("again", again), ("twice each", _reduce_events(fixture, reduce, doubled))):
        changed = [
            root
            for root in {*once, *state}
            if _drop_repeat_counts(root, once) != _drop_repeat_counts(root, state)
        ]
        if changed:
            yield f"facts that came {name} changed {', '.join(sorted(changed))}"


def _drop_repeat_counts(root: str, document: Wire) -> object:
    """A root of a state without the counts of facts that came, which is all a repeat changes."""
    value = document.get(root)
    if root != "hydration" or not isinstance(value, dict):
        return value
    fields = cast("Wire", value)
    return {name: fields[name] for name in fields if name not in ("received", "repeated")}


def check_refs(fixture: Fixture, reduce: Reducer) -> Iterator[str]:
    """Every ref that a fact names is somewhere in the state."""
    document = _reduce_fixture(fixture, reduce)
    yield from (difference.message for difference in missing_refs(fixture.events, document))
    for difference in find_unshown(fixture, reduce):
        if difference.requirement == REFS:
            yield difference.message


def check_nothing_guessed(fixture: Fixture, reduce: Reducer) -> Iterator[str]:
    """Other words in titles, messages and texts change no status, count or kind."""
    reworded = [_reword(event) for event in fixture.events]
    original, other = _reduce_fixture(fixture, reduce), _reduce_events(fixture, reduce, reworded)
    yield from _differences("other words", read_figures(original), read_figures(other))
    yield from _differences("other words", read_states(original), read_states(other))


_CHECKS: Final[Mapping[str, Check]] = {
    "screen.expected": check_expected,
    "screen.first-screen": check_first_screen,
    "screen.replay": check_replay,
    "screen.refs": check_refs,
    "screen.nothing-guessed": check_nothing_guessed,
}


def _cases_of(fixture: Fixture) -> Iterator[Case]:
    def facts(_: Reducer) -> Iterator[Finding]:
        return check_facts(fixture)

    yield Case(
        id=f"fixture.{fixture.id}.facts",
        title=f"{fixture.title} The facts are valid.",
        source="seed 001, provider conformance slice; facts.md §5",
        requirements=("stream.schema",),
        level="facts",
        run=facts,
    )
    yield Case(
        id=f"fixture.{fixture.id}.screen",
        title=fixture.title,
        source="seed 001, provider conformance slice; facts.md §5",
        requirements=tuple(dict.fromkeys((*_CHECKS, *ACCOUNT_REQUIREMENTS))),
        level="projection",
        run=partial(fixture_findings, fixture),
    )


def _reduce_fixture(fixture: Fixture, reduce: Reducer) -> Wire:
    return _reduce_events(fixture, reduce, fixture.events)


def _reduce_events(fixture: Fixture, reduce: Reducer, events: list[Wire]) -> Wire:
    return call_reducer(reduce, events, fixture.initial_read_model)


def _stream_codes(fixture: Fixture) -> set[str]:
    """What a validator says of the stream by itself: the defects that a fixture must declare."""
    before = fixture.initial_read_model
    return {issue.code for issue in inspect_stream(fixture.events, "facts", read_model=before)}


def _differences(what: str, wanted: Wire, got: Wire) -> Iterator[str]:
    for name in wanted:
        if wanted[name] != got.get(name):
            yield f"{what}: expected {name} {wanted[name]}, got {got.get(name)}"


def _reword(event: Wire) -> Wire:
    words = {name: _OTHER_WORDS for name in _PROSE if name in event}
    payload = dict(event.get("payload", {}))
    payload |= {name: _OTHER_WORDS for name in _PROSE_IN_PAYLOAD if name in payload}
    if "messages" in payload:
        payload["messages"] = [
            {**row, "text": _OTHER_WORDS} if "text" in row else row for row in payload["messages"]
        ]
    return {**event, **words, "payload": payload}


def _fixture_finding(
    requirement: str, level: Level, message: str, path: str | None = None
) -> Finding:
    return Finding(requirement=requirement, level=level, message=message, path=path)
