"""The resume contract: every open action is answered, each once, none that is not open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import RESUME_CODES, OpenAction, OpenActions, ResumeAnswer, resume_issues
from tests.facts.samples import fact

CLOSERS = ["action.resolved", "action.cancelled", "action.canceled", "action.expired"]


def open_actions(*names: str) -> tuple[OpenAction, ...]:
    return tuple(OpenAction(action_id=name) for name in names)


def answers(*names: str) -> tuple[ResumeAnswer, ...]:
    return tuple(ResumeAnswer(action_id=name) for name in names)


@pytest.mark.requirement("resume.covers-all")
def test_a_resume_that_covers_every_open_action_goes_on():
    assert resume_issues(open_actions("a", "b"), answers("b", "a")) == []
    assert resume_issues((), ()) == []


@pytest.mark.requirement("resume.covers-all")
def test_every_action_without_an_answer_is_named():
    issues = resume_issues(open_actions("a", "b", "c"), answers("b"))
    assert [(issue.code, issue.action_id) for issue in issues] == [
        ("resume_action_uncovered", "a"),
        ("resume_action_uncovered", "c"),
    ]
    assert issues[0].message == RESUME_CODES["resume_action_uncovered"]


@pytest.mark.requirement("resume.codes")
def test_unknown_repeated_and_expired_answers_are_told_apart():
    issues = resume_issues(open_actions("a", "b"), answers("x", "a", "a", "b"), frozenset({"b"}))
    assert [(issue.code, issue.action_id) for issue in issues] == [
        ("resume_action_unknown", "x"),
        ("resume_action_repeated", "a"),
        ("resume_action_expired", "b"),
    ]


@pytest.mark.requirement("resume.codes")
def test_there_are_four_reasons():
    assert sorted(RESUME_CODES) == [
        "resume_action_expired",
        "resume_action_repeated",
        "resume_action_uncovered",
        "resume_action_unknown",
    ]


NAMES = st.lists(st.sampled_from("abcd"), max_size=5)


@pytest.mark.requirement("resume.covers-all")
@given(st.sets(st.sampled_from("abcd")), NAMES, st.sets(st.sampled_from("abcd")))
def test_a_resume_goes_on_only_if_the_answers_are_the_open_actions(
    required: set[str], given_answers: list[str], expired: set[str]
):
    issues = resume_issues(
        open_actions(*sorted(required)), answers(*given_answers), frozenset(expired)
    )
    exact = sorted(given_answers) == sorted(required) and not required & expired
    assert (issues == []) == exact


@pytest.mark.requirement("resume.open-actions")
def test_an_open_action_tells_what_a_decision_needs():
    actions = OpenActions()
    actions.feed(
        fact(
            "action.required",
            turnId="t1",
            toolCallId="c1",
            actionId="a1",
            payload={"actionType": "tool_approval", "argsHash": "h", "expiresAt": "2026"},
        )
    )
    assert actions.all() == (
        OpenAction(
            action_id="a1",
            turn_id="t1",
            tool_call_id="c1",
            action_type="tool_approval",
            args_hash="h",
            expires_at="2026",
        ),
    )


@pytest.mark.requirement("resume.open-actions")
@pytest.mark.parametrize("closer", CLOSERS)
def test_an_action_is_open_until_it_is_closed(closer: str):
    actions = OpenActions()
    for name, action in (("action.required", "a"), ("action.required", "b"), (closer, "a")):
        actions.feed(fact(name, turnId="t1", payload={"request_id": action}))
    assert [action.action_id for action in actions.all()] == ["b"]


@pytest.mark.requirement("resume.open-actions")
@pytest.mark.parametrize(
    "name", ["action.updated", "turn.completed", "snapshot.updated", "tool.result"]
)
def test_nothing_else_closes_an_action(name: str):
    actions = OpenActions()
    actions.feed(fact("action.required", turnId="t1", actionId="a", payload={"expiresAt": 7}))
    actions.feed(fact(name, turnId="t1", actionId="a"))
    assert actions.of_turn("t1") == (OpenAction(action_id="a", turn_id="t1"),)


@pytest.mark.requirement("resume.open-actions")
def test_a_resume_covers_the_actions_of_its_turn():
    actions = OpenActions()
    actions.feed(fact("action.required", turnId="t1", actionId="a"))
    actions.feed(fact("action.required", turnId="t2", actionId="b"))
    actions.feed(fact("action.required", turnId="t1"))
    actions.feed(fact("action.resolved", turnId="t1", actionId="never asked"))
    assert [action.action_id for action in actions.of_turn("t1")] == ["a"]
    assert [action.action_id for action in actions.all()] == ["a", "b"]
