"""The rules of facts, judged on Factwire itself: small streams whose issues are known.

Every row is a requirement with facts that keep it and facts that break it. The validator, the
lifecycle verifier, the redactor and the mapping to UI events are asked through their public
functions; the expected answers are written by hand, from the contract.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from factwire.conformance.case import Case, Finding, Reducer, Wire
from factwire.conformance.rule_tables import (
    CLASS_ALIASES,
    DEFAULT_KINDS,
    DEFAULT_STATUSES,
    FACT_ISSUES,
    GAP_STREAMS,
    LARGE_TEXT,
    LIFECYCLE_STREAMS,
    REQUIRED_IDS,
    SECRET,
    SUBJECTS,
    build_event,
    build_runtime_event,
    without_field,
)
from factwire.facts import (
    KNOWN_CLASSES,
    REDACTED,
    REF_KINDS,
    RUNTIME_CLASSES,
    UI_CLASSES,
    FactError,
    Intake,
    InvalidFacts,
    LifecycleVerifier,
    OpenAction,
    OpenActions,
    ResumeAnswer,
    classify,
    content_ref,
    decode_fact,
    encode_fact,
    id_of,
    inspect_fact,
    inspect_stream,
    is_valid,
    kind_of,
    parse_ref,
    read_fact,
    read_input,
    redact_value,
    ref_issue,
    resume_issues,
    shape_of,
    status_of,
    to_ui_events,
    validate_fact,
    verify,
    write_fact,
    write_input,
)

Problems = Iterator[str]


def _codes(value: Wire) -> list[str]:
    return sorted({issue.code for issue in inspect_fact(value)})


def _expect(what: str, got: object, wanted: object) -> Problems:
    if got != wanted:
        yield f"{what}: expected {wanted!r}, got {got!r}"


def _expect_true(what: str, got: object) -> Problems:
    if not got:
        yield f"{what}: expected to hold, and it does not"


def _expect_false(what: str, got: object) -> Problems:
    if got:
        yield f"{what}: expected not to hold, and it does"


def _stream(*classes: str, turn: str = "trn_1") -> list[Any]:
    return [
        read_fact(build_event(name, place, turnId=turn, **SUBJECTS.get(name.partition(".")[0], {})))
        for place, name in enumerate(classes, 1)
    ]


def _check_lifecycle(rule: str) -> Problems:
    for classes, wanted in LIFECYCLE_STREAMS[rule]:
        got = tuple(violation.code for violation in verify(_stream(*classes)))
        yield from _expect(" ".join(classes), got, wanted)


def _check_duplicate_ids() -> Problems:
    [first] = _stream("model.delta")
    yield from _expect(
        "one fact twice", [each.code for each in verify([first, first])], ["duplicate_event_id"]
    )


def _check_duplicates_change_nothing() -> Problems:
    facts = _stream("tool.started", "tool.result", "turn.completed")
    codes = [each.code for each in verify([fact for fact in facts for _ in range(2)])]
    yield from _expect("each fact twice", set(codes), {"duplicate_event_id"})


def _check_per_turn() -> Problems:
    other = [msgspec.structs.replace(each, id="other") for each in _stream("turn.completed")]
    mixed = [*_stream("tool.started"), *(msgspec.structs.replace(f, turn_id="2") for f in other)]
    yield from _expect("a call of another turn", [each.code for each in verify(mixed)], [])


def _check_incremental() -> Problems:
    facts = _stream("tool.result", "tool.started", "patch.started", "turn.completed")
    verifier = LifecycleVerifier("collect")
    by_one = [violation.code for fact in facts for violation in verifier.feed(fact)]
    yield from _expect("fact by fact", by_one, [each.code for each in verify(facts)])


def _check_modes() -> Problems:
    [fact] = _stream("tool.result")
    try:
        LifecycleVerifier("fail-closed").feed(fact)
        yield "fail-closed took a result without a start"
    except FactError:
        pass
    yield from _expect("collect", len(list(LifecycleVerifier("collect").feed(fact))), 1)
    yield from _expect("off", list(LifecycleVerifier("off").feed(fact)), [])


def _check_subjects() -> Problems:
    started = build_event("command.started", 1, payload={"command_id": "c1"})
    ended = build_event("command.exited", 2, payload={"commandId": "c1", "exitCode": 0})
    facts = [read_fact(started), read_fact(ended)]
    yield from _expect("camel and snake case", [each.code for each in verify(facts)], [])


def _check_needs(rule: str) -> Problems:
    for name, whole, lacking in REQUIRED_IDS[rule]:
        yield from _expect(f"{name} with {whole}", _codes(build_event(name, **whole)), [])
        codes = _codes(build_event(name, **lacking))
        yield from _expect(f"{name} with {lacking}", codes, ["missing_scope_id"])


def _check_runtime_scope() -> Problems:
    for name in ("turn.started", "model.delta", "reasoning.delta", "sandbox.applied"):
        scoped = build_runtime_event(name, threadId="t", turnId="u")
        yield from _expect(f"{name} with thread and turn", _codes(scoped), [])
        codes = _codes(build_runtime_event(name))
        yield from _expect(f"{name} without", codes, ["missing_scope_id"])


def _check_issues(requirement: str) -> Problems:
    for value, wanted in FACT_ISSUES[requirement]:
        shown = value.get("eventClass")
        yield from _expect(f"a fact of {shown}", tuple(_codes(value)), wanted)


def _check_gaps(requirement: str) -> Problems:
    for rows, wanted in GAP_STREAMS[requirement]:
        events = [
            build_event(
                name or "run.status",
                place,
                sequence=sequence,
                threadId=thread or None,
                payload=payload[0] if payload else {},
            )
            for place, (sequence, thread, name, *payload) in enumerate(rows)
        ]
        stated = [
            {key: value for key, value in each.items() if value is not None} for each in events
        ]
        got = sum(issue.code == "sequence_gap" for issue in inspect_stream(stated))
        yield from _expect(f"sequences {[row[0] for row in rows]}", got, wanted)


def _check_violations() -> Problems:
    events = [build_event("tool.result", 1, toolCallId="c")]
    got = [(issue.code, issue.path) for issue in inspect_stream(events)]
    yield from _expect("a result without a start", got, [("sequence_violation", "$[0]")])


def _check_paths() -> Problems:
    events = [build_event("run.status", 1), build_event("tool.started", 2)]
    got = [issue.path for issue in inspect_stream(events)]
    yield from _expect("the second fact lacks its call", got, ["$[1].toolCallId"])


def _check_collector() -> Problems:
    values: tuple[Any, ...] = (None, 7, [], "{", {}, {"id": 3})
    for value in values:
        try:
            issues = inspect_stream([value])
        except Exception as error:  # noqa: BLE001 - that it raises is what is wrong with it
            yield f"{value!r} raised {type(error).__name__}"
        else:
            yield from _expect_false(f"{value!r} is valid", is_valid(issues))


def _check_strict() -> Problems:
    value = without_field(without_field(build_event("run.status"), "title"), "kind")
    try:
        validate_fact(value)
        yield "a fact without title and kind was taken"
    except InvalidFacts as error:
        yield from _expect("issues of one error", len(error.issues), 2)


def _check_shapes_required() -> Problems:
    yield from _expect_true("an empty UI event", _codes({"type": ""}) != [])
    for name in ("eventId", "timestamp", "sessionId"):
        value = without_field(build_runtime_event("run.status"), name)
        yield from _expect_false(f"a runtime event without {name}", is_valid(inspect_fact(value)))


def _check_detection() -> Problems:
    yield from _expect("shape A", shape_of(build_event("run.status")), "facts")
    yield from _expect("shape B", shape_of(build_runtime_event("run.status")), "runtime-event")
    yield from _expect("shape C", shape_of({"type": "text.delta", "surface": "conversation"}), "ui")


def _check_round_trip(shape: Any = "facts") -> Problems:
    for name in ("tool.started", "turn.completed", "garden.watered"):
        fact = read_fact(build_event(name, toolCallId="c", payload={"a": 1}, note="kept"))
        yield from _expect(f"{name} by {shape}", read_fact(write_fact(fact, shape), shape), fact)


def _check_conversion() -> Problems:
    fact = read_fact(build_event("tool.started", toolCallId="c", payload={"a": 1}, sessionId="s"))
    through = read_fact(write_fact(fact, "runtime-event"), "runtime-event")
    yield from _expect("through a runtime event", through, fact)


def _check_null() -> Problems:
    fact = read_fact(build_event("run.status", toolCallId=None, detail=None))
    yield from _expect("null fields", fact, read_fact(build_event("run.status")))


def _check_fast_is_slow() -> Problems:
    for name in ("model.delta", "tool.started"):
        value = build_event(name, toolCallId="c", payload={"delta": "x"})
        decoded = decode_fact(msgspec.json.encode(value))
        yield from _expect(name, decoded, read_fact(value))
        yield from _expect(f"{name} again", decode_fact(encode_fact(decoded)), decoded)


def _check_aliases() -> Problems:
    for name, wanted in CLASS_ALIASES.items():
        fact = read_fact(build_event(name, artifactId="a"))
        yield from _expect(name, fact.event_class, wanted)


def _check_id_lookup() -> Problems:
    spelled: tuple[Wire, ...] = (
        {"toolCallId": "c"},
        {"payload": {"toolCallId": "c"}},
        {"payload": {"tool_call_id": "c"}},
    )
    for fields in spelled:
        got = id_of(read_fact(build_event("tool.started", **fields)), "toolCallId")
        yield from _expect(f"{fields}", got, "c")
    both = build_event("tool.started", toolCallId="top", payload={"toolCallId": "below"})
    yield from _expect("both", id_of(read_fact(both), "toolCallId"), "top")


def _check_defaults(table: Mapping[str, str], find: Callable[[str], str]) -> Problems:
    for name, wanted in table.items():
        yield from _expect(name, find(name), wanted)


def _check_title() -> Problems:
    fact = read_fact(build_runtime_event("run.status"))
    yield from _expect("a fact without a title", fact.title, "run.status")


def _check_unknown_fields() -> Problems:
    written = write_fact(read_fact(build_event("run.status", weather={"sun": True})))
    yield from _expect("an unknown field", written.get("weather"), {"sun": True})


def _check_unknown_class() -> Problems:
    fact = read_fact(build_event("garden.watered"))
    yield from _expect("an unknown class", fact.event_class, "garden.watered")


def _check_redaction(values: Iterable[tuple[Any, Any]]) -> Problems:
    for value, wanted in values:
        yield from _expect("redacted", redact_value(value)[0], wanted)


def _check_redaction_twice() -> Problems:
    once = redact_value({"password": "hunter22", "text": f"key {SECRET}"})[0]
    yield from _expect("redacted again", redact_value(once)[0], once)


def _check_refs(good: Iterable[str], bad: Iterable[str]) -> Problems:
    for ref in good:
        yield from _expect(ref, ref_issue(ref, "$"), None)
    for ref in bad:
        yield from _expect_true(f"{ref[:30]} is refused", ref_issue(ref, "$") is not None)


def _check_content_refs() -> Problems:
    ref = content_ref("output", b"hello")
    yield from _expect("the same bytes", content_ref("output", b"hello"), ref)
    yield from _expect_false("other bytes", content_ref("output", b"hallo") == ref)
    yield from _expect("the parts of a ref", parse_ref(ref)[0], "output")


def _check_ref_kinds() -> Problems:
    yield from _expect("kinds of refs", len(REF_KINDS), 6)


def _check_inputs(parts: Any) -> Problems:
    yield from _expect("read and written", write_input(read_input(parts)), parts)


def _check_refused_inputs() -> Problems:
    refused: tuple[Wire, ...] = (
        {"type": "asset", "kind": "image", "ref": "/home/me/a.png"},
        {"type": "asset", "kind": "image", "ref": "file:///a.png"},
        {"type": "asset", "kind": "image", "ref": "data:image/png;base64,AAAA"},
        {"type": "bytes", "data": "AAAA"},
    )
    for part in refused:
        try:
            read_input([part])
            yield f"{part} was taken"
        except InvalidFacts:
            continue


def _check_resume() -> Problems:
    required = (OpenAction(action_id="a"), OpenAction(action_id="b"))
    answers = (ResumeAnswer(action_id="a"),)
    got = [issue.action_id for issue in resume_issues(required, answers)]
    yield from _expect("an answer is missing", got, ["b"])
    both = (*answers, ResumeAnswer(action_id="b"))
    yield from _expect("both are answered", resume_issues(required, both), [])


def _check_resume_codes() -> Problems:
    required = (OpenAction(action_id="a"), OpenAction(action_id="b"))
    names = ("a", "a", "x", "b")
    answers = tuple(ResumeAnswer(action_id=name) for name in names)
    found = {issue.code for issue in resume_issues(required, answers, frozenset({"b"}))}
    yield from _expect("unknown, repeated and expired", len(found), 3)


def _check_open_actions() -> Problems:
    actions = OpenActions()
    for name, key in (("required", "a"), ("required", "b"), ("resolved", "a")):
        actions.feed(read_fact(build_event(f"action.{name}", actionId=key)))
    yield from _expect("open", [each.action_id for each in actions.all()], ["b"])


def _check_ui_complete() -> Problems:
    for name in RUNTIME_CLASSES:
        events = to_ui_events(read_fact(build_event(name)))
        if not events or any(event.event_class not in UI_CLASSES for event in events):
            yield f"{name} becomes {[event.event_class for event in events]}"


def _check_ui_artifact() -> Problems:
    fact = read_fact(build_event("tool.result", toolCallId="c", artifactId="a"))
    classes = [event.event_class for event in to_ui_events(fact)]
    yield from _expect_true("a result with an artifact", "artifact.changed" in classes)


def _check_ui_unknown() -> Problems:
    [event] = to_ui_events(read_fact(build_event("garden.watered")))
    yield from _expect("an unknown class", event.event_class, "diagnostic.changed")


def _check_ui_promotion() -> Problems:
    classes = [event.event_class for event in to_ui_events(read_fact(build_event("tool.result")))]
    yield from _expect_false("a result without a call", "tool.result" in classes)


def _check_vocabulary() -> Problems:
    for name in ("turn.started", "model.delta", "tool.catalog.resolved", "benchmark.trial.failed"):
        yield from _expect_true(f"{name} has a row", name in RUNTIME_CLASSES)
    yield from _expect_true("all are known", set(RUNTIME_CLASSES) <= set(KNOWN_CLASSES))


def _check_ui_vocabulary() -> Problems:
    for name in ("session.opened", "text.delta", "state.snapshot", "metric.changed"):
        yield from _expect_true(f"{name} has a row", name in UI_CLASSES)


def _check_classification() -> Problems:
    fact = read_fact(build_event("tool.started", toolCallId="c", owner="team"))
    filled = classify(fact)
    yield from _expect("the owner that was stated", filled.owner, "team")
    yield from _expect("a surface is filled in", filled.surface, "tool_ui")


def _check_open_words() -> Problems:
    value = build_event("run.status", kind="poem", status="dreaming", surface="ceiling")
    yield from _expect_true("words outside the lists", is_valid(inspect_fact(value)))


def _check_intake_mends() -> Problems:
    value = build_event("run.status", payload={"password": "hunter22", "text": LARGE_TEXT})
    result = Intake().feed(value)
    yield from _expect_false("the secret is gone", b"hunter22" in result.data)
    yield from _expect_true("the payload is smaller", len(result.data) < len(LARGE_TEXT))


def _check_intake_refuses() -> Problems:
    intake = Intake()
    try:
        intake.feed(build_event("tool.started"))
        yield "a call without an id was taken"
    except InvalidFacts:
        pass


_COUNTERS: Final = {"totalTokens": 9, "max_tokens": 4}
_REDACTED_BY_KEY: Final = (({"password": "hunter22"}, {"password": REDACTED}),)

RULES: Final[Mapping[str, Callable[[], Problems]]] = {
    **{f"lifecycle.{rule}": partial(_check_lifecycle, rule) for rule in LIFECYCLE_STREAMS},
    "lifecycle.duplicate_event_id": _check_duplicate_ids,
    "lifecycle.duplicates-change-nothing": _check_duplicates_change_nothing,
    "lifecycle.per-turn": _check_per_turn,
    "lifecycle.incremental": _check_incremental,
    "lifecycle.modes": _check_modes,
    "lifecycle.subjects": _check_subjects,
    **{f"needs.{rule}": partial(_check_needs, rule) for rule in REQUIRED_IDS},
    "needs.runtime-event-scope": _check_runtime_scope,
    **{name: partial(_check_issues, name) for name in FACT_ISSUES},
    **{name: partial(_check_gaps, name) for name in GAP_STREAMS},
    "validation.sequence_violation": _check_violations,
    "validation.paths": _check_paths,
    "validation.collector": _check_collector,
    "validation.strict": _check_strict,
    "facts.shapes.required": _check_shapes_required,
    "facts.shapes.detection": _check_detection,
    "facts.shapes.round-trip": _check_round_trip,
    "facts.shapes.conversion": _check_conversion,
    "facts.shapes.null-is-absent": _check_null,
    "facts.shapes.fast-is-slow": _check_fast_is_slow,
    "facts.aliases": _check_aliases,
    "facts.ids.lookup": _check_id_lookup,
    "facts.kind-default": partial(_check_defaults, DEFAULT_KINDS, kind_of),
    "facts.status-default": partial(_check_defaults, DEFAULT_STATUSES, status_of),
    "facts.title-default": _check_title,
    "facts.unknown-fields": _check_unknown_fields,
    "facts.unknown-classes": _check_unknown_class,
    "vocabulary.runtime-classes": _check_vocabulary,
    "vocabulary.ui-classes": _check_ui_vocabulary,
    "vocabulary.open": _check_open_words,
    "classification.fill": _check_classification,
    "redaction.key": partial(_check_redaction, _REDACTED_BY_KEY),
    "redaction.nested": partial(
        _check_redaction, (({"a": [{"password": "hunter22"}]}, {"a": [{"password": REDACTED}]}),)
    ),
    "redaction.value": partial(_check_redaction, (({"note": SECRET}, {"note": REDACTED}),)),
    "redaction.counters-untouched": partial(
        _check_redaction,
        (({"totalTokens": 9, "max_tokens": 4}, {"totalTokens": 9, "max_tokens": 4}),),
    ),
    "redaction.idempotent": _check_redaction_twice,
    "refs.content-addressed": _check_content_refs,
    "refs.kinds": _check_ref_kinds,
    "refs.no-paths": partial(_check_refs, ("output:1",), ("/etc/passwd", "file:///a", "~/a", "")),
    "refs.no-inline-data": partial(_check_refs, ("output:1",), ("data:text/plain,hello",)),
    "refs.no-secrets": partial(_check_refs, ("output:1",), (f"output:{SECRET}",)),
    "inputs.text": partial(_check_inputs, [{"type": "text", "text": "as it is "}]),
    "inputs.assets": partial(
        _check_inputs, [{"type": "asset", "kind": "image", "ref": "asset:photo-1"}]
    ),
    "inputs.workspace": partial(
        _check_inputs, [{"type": "workspace", "ref": "workspace:ticket-7"}]
    ),
    "inputs.capabilities": partial(_check_inputs, [{"type": "capability", "ref": "capability:1"}]),
    "inputs.refused": _check_refused_inputs,
    "resume.covers-all": _check_resume,
    "resume.codes": _check_resume_codes,
    "resume.open-actions": _check_open_actions,
    "ui.complete": _check_ui_complete,
    "ui.artifact-card": _check_ui_artifact,
    "ui.unknown-class": _check_ui_unknown,
    "ui.never-promoted": _check_ui_promotion,
    "intake.mends": _check_intake_mends,
    "intake.refuses": _check_intake_refuses,
}
"""Requirement → what judges it."""


def rule_cases() -> tuple[Case, ...]:
    """Every rule as a case; no reducer has a part in them."""
    return tuple(
        Case(
            id=f"rule.{name}",
            title=name,
            source="facts.md §1 to §3",
            requirements=(name,),
            level="facts",
            run=partial(_run_rule, name),
        )
        for name in RULES
    )


def _run_rule(name: str, _: Reducer) -> Iterator[Finding]:
    for problem in RULES[name]():
        yield Finding(requirement=name, message=problem, level="facts")
