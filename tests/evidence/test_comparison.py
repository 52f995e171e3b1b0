"""Two runs compared: every change is found, and nothing else."""

from collections.abc import Callable

import msgspec
import pytest

from factwire.evidence.run_account import build_account
from factwire.evidence.run_comparison import (
    ASPECTS,
    Aspect,
    Change,
    Comparison,
    Difference,
    Figures,
    TextChange,
    TextLine,
    narrow_comparison,
)
from factwire.evidence.run_diff import compare
from factwire.facts import Fact
from tests.evidence.compared_runs import Call, TurnSpec, facts_of, stream


def build_turns() -> list[TurnSpec]:
    """A run of four turns with something of everything."""
    return [
        TurnSpec(
            prompt="Look at the parser.",
            answer="It drops the last line.",
            calls=[Call("read", {"path": "parser.py"}), Call("grep", {"for": "EOF", "in": "src"})],
        ),
        TurnSpec(
            prompt="Fix it.",
            answer="Fixed.\nAll tests pass.\nNothing else changed.",
            calls=[
                Call("edit", {"path": "parser.py", "line": 40}),
                Call("shell", {"command": "make test"}, decision=("approved", "anna")),
            ],
            files={"parser.py": 3},
            artifacts=["report.md"],
            helpers=["Tester"],
            warnings=["The cache is cold."],
        ),
        TurnSpec(prompt="Write the changelog.", answer="Written."),
        TurnSpec(prompt="Thank you.", answer="You are welcome."),
    ]


def compare_edited(edit: Callable[[list[TurnSpec]], object]) -> Comparison:
    """The run against itself with one edit, done at another time with other ids."""
    after = build_turns()
    edit(after)
    return compare(facts_of(build_turns()), facts_of(after, "b", seconds=3))


def differences(comparison: Comparison) -> dict[int, list[Difference]]:
    assert comparison.outside == []
    return {
        turn.a.number if turn.a else 0: turn.differences
        for turn in comparison.turns
        if turn.status != "same"
    }


@pytest.mark.requirement("comparison.volatile")
def test_the_same_run_at_another_time_with_other_ids_is_the_same():
    comparison = compare_edited(lambda turns: turns)
    assert comparison.same
    assert [turn.status for turn in comparison.turns] == ["same"] * 4
    assert comparison.a.figures.duration_ms != comparison.b.figures.duration_ms


def set_prompt(turns: list[TurnSpec]) -> None:
    turns[2].prompt = "Write release notes."


def set_answer(turns: list[TurnSpec]) -> None:
    turns[0].answer = "It drops the first line."


def set_outcome(turns: list[TurnSpec]) -> None:
    turns[3].outcome = "canceled"


def set_args(turns: list[TurnSpec]) -> None:
    turns[0].calls[1].args["for"] = "EOL"


def set_failure(turns: list[TurnSpec]) -> None:
    turns[1].calls[0].failed = True


def set_output(turns: list[TurnSpec]) -> None:
    turns[0].calls[0].output = "empty"


def set_decision(turns: list[TurnSpec]) -> None:
    turns[1].calls[1].decision = ("approved", "bert")


def set_files(turns: list[TurnSpec]) -> None:
    turns[1].files["parser.py"] = 4


def set_model(turns: list[TurnSpec]) -> None:
    turns[2].model = "small-1"


def set_cost(turns: list[TurnSpec]) -> None:
    turns[2].tokens = 250


def drop_artifact(turns: list[TurnSpec]) -> None:
    turns[1].artifacts.clear()


def add_helper(turns: list[TurnSpec]) -> None:
    turns[1].helpers.append("Writer")


def set_warning(turns: list[TurnSpec]) -> None:
    turns[1].warnings[0] = "The disk is full."


def drop_call(turns: list[TurnSpec]) -> None:
    del turns[0].calls[0]


def swap_calls(turns: list[TurnSpec]) -> None:
    turns[0].calls.reverse()


def one(aspect: Aspect, subject: str, *changes: Change, at: int = 1) -> Difference:
    return Difference(
        aspect=aspect, kind="changed", subject=subject, at_a=at, at_b=at, changes=list(changes)
    )


PLANTED: dict[Callable[[list[TurnSpec]], None], tuple[int, Difference]] = {
    set_prompt: (
        3,
        one(
            "prompt",
            "prompt",
            Change(field="text", a="Write the changelog.", b="Write release notes."),
        ),
    ),
    set_answer: (
        1,
        one(
            "answers",
            "assistant",
            Change(field="text", a="It drops the last line.", b="It drops the first line."),
        ),
    ),
    set_outcome: (
        4,
        one("outcome", "outcome", Change(field="status", a="completed", b="canceled")),
    ),
    set_args: (1, one("tools", "grep", Change(field="args.for", a="EOF", b="EOL"), at=2)),
    set_failure: (
        2,
        one(
            "tools",
            "edit",
            Change(field="failureCategory", b="broken"),
            Change(field="output", a="fine"),
            Change(field="status", a="output-available", b="output-error"),
        ),
    ),
    set_output: (1, one("tools", "read", Change(field="output", a="fine", b="empty"))),
    set_decision: (
        2,
        one("approvals", "tool_approval", Change(field="decidedBy", a="anna", b="bert")),
    ),
    set_files: (2, one("files", "parser.py", Change(field="addedLines", a=3, b=4))),
    set_model: (3, one("models", "models", Change(field="used", a=["large-2"], b=["small-1"]))),
    set_cost: (
        3,
        one(
            "cost",
            "cost",
            Change(field="costUsd", a=0.1, b=0.25),
            Change(field="inputTokens", a=100, b=250),
            Change(field="totalTokens", a=100, b=250),
        ),
    ),
    drop_artifact: (
        2,
        Difference(
            aspect="artifacts",
            kind="removed",
            subject="report.md",
            at_a=1,
            changes=[Change(field="kind", a="unknown"), Change(field="status", a="created")],
        ),
    ),
    add_helper: (
        2,
        Difference(
            aspect="agents",
            kind="added",
            subject="Writer",
            at_b=2,
            changes=[Change(field="status", b="completed")],
        ),
    ),
    set_warning: (
        2,
        one(
            "errors",
            "careful",
            Change(field="message", a="The cache is cold.", b="The disk is full."),
        ),
    ),
    drop_call: (
        1,
        Difference(
            aspect="tools",
            kind="removed",
            subject="read",
            at_a=1,
            changes=[
                Change(field="args.path", a="parser.py"),
                Change(field="status", a="output-available"),
                Change(field="output", a="fine"),
            ],
        ),
    ),
    swap_calls: (
        1,
        Difference(aspect="tools", kind="moved", subject="grep", at_a=2, at_b=1),
    ),
}


@pytest.mark.requirement("comparison.planted")
@pytest.mark.parametrize("edit", PLANTED, ids=lambda edit: edit.__name__)
def test_a_planted_change_is_found_and_nothing_else(edit: Callable[[list[TurnSpec]], None]):
    turn, difference = PLANTED[edit]
    found = differences(compare_edited(edit))
    if edit is swap_calls:
        # Either of two calls that changed places may be the one that moved.
        [moved] = found.pop(turn)
        assert (moved.kind, {moved.at_a, moved.at_b}, found) == ("moved", {1, 2}, {})
        return
    assert found == {turn: [difference]}


@pytest.mark.requirement("comparison.texts")
def test_a_long_answer_is_shown_as_the_lines_that_differ():
    def edit(turns: list[TurnSpec]) -> None:
        turns[1].answer = "Fixed.\nAll tests but one pass.\nNothing else changed."

    lines = [
        TextLine(side="both", text="Fixed."),
        TextLine(side="a", text="All tests pass."),
        TextLine(side="b", text="All tests but one pass."),
        TextLine(side="both", text="Nothing else changed."),
    ]
    text = TextChange(removed_lines=1, added_lines=1, lines=lines)
    expected = one("answers", "assistant", Change(field="text", text=text))
    assert differences(compare_edited(edit)) == {2: [expected]}


@pytest.mark.requirement("comparison.turns")
@pytest.mark.parametrize("place", range(5))
def test_a_turn_that_was_put_in_shifts_no_other(place: int):
    new = TurnSpec(prompt="And what about Windows?", answer="It works there, too.")
    comparison = compare_edited(lambda turns: turns.insert(place, new))
    expected = ["same"] * 4
    expected.insert(place, "only_b")
    assert [turn.status for turn in comparison.turns] == expected


@pytest.mark.requirement("comparison.turns")
@pytest.mark.parametrize("place", range(4))
def test_a_turn_that_is_missing_shifts_no_other(place: int):
    comparison = compare_edited(lambda turns: turns.pop(place))
    expected = ["same"] * 4
    expected[place] = "only_a"
    assert [turn.status for turn in comparison.turns] == expected


@pytest.mark.requirement("comparison.turns")
def test_among_turns_with_one_prompt_the_missing_one_is_known_by_what_it_did():
    a = [TurnSpec(prompt="Go on.", answer=f"Step {number}.") for number in range(5)]
    comparison = compare(facts_of(a), facts_of([*a[:2], *a[3:]], "b"))
    assert [turn.status for turn in comparison.turns] == ["same", "same", "only_a", "same", "same"]


@pytest.mark.requirement("comparison.turns")
def test_a_reworded_prompt_is_a_turn_that_differs_beside_one_that_is_new():
    a = [TurnSpec(prompt="Fix the failing test in the parser", answer="Done.")]
    new = TurnSpec(prompt="Hello!", answer="Hello.")
    b = [new, TurnSpec(prompt="Please fix the failing test in the parser module", answer="Done.")]
    comparison = compare(facts_of(a), facts_of(b, "b"))
    assert [turn.status for turn in comparison.turns] == ["only_b", "differs"]


@pytest.mark.requirement("comparison.turns")
def test_many_turns_that_all_differ_are_still_paired_by_their_prompts():
    a = [TurnSpec(prompt=f"Do {number}", answer="One way.") for number in range(150)]
    b = [TurnSpec(prompt=f"Do {number}", answer="Another way.") for number in range(150)]
    del b[70]
    b.insert(20, TurnSpec(prompt="Say hello", answer="Hello."))
    statuses = [turn.status for turn in compare(facts_of(a), facts_of(b, "b")).turns]
    assert (statuses.count("differs"), statuses[20], statuses[71]) == (149, "only_b", "only_a")


@pytest.mark.requirement("comparison.volatile")
def test_ids_and_moments_inside_texts_and_arguments_are_no_difference():
    def run(mint: str, ulid: str, at: str, uuid: str) -> list[Fact]:
        call = Call("open", {"path": f"/tmp/{ulid}/x", "since": at, "call": f"call_trn_{mint}0_0"})
        answer = f"Wrote {uuid} at {at} for trn_{mint}0."
        return facts_of([TurnSpec(prompt="Go.", answer=answer, calls=[call])], mint)

    a = run(
        "a",
        "01J0ABCDEFGHJKMNPQRSTVWXYZ",
        "2026-06-10T09:00:00Z",
        f"{'1' * 8}-aaaa-bbbb-cccc-{'2' * 12}",
    )
    b = run(
        "b",
        "01K9ZYXWVTSRQPNMKJHGFEDCBA",
        "2027-01-01 10:30",
        f"{'3' * 8}-dddd-eeee-ffff-{'4' * 12}",
    )
    assert compare(a, b).same


@pytest.mark.requirement("comparison.volatile")
def test_numbers_dates_and_names_inside_texts_are_differences():
    for a, b in [("48 tests", "47 tests"), ("on 2026-06-10", "on 2026-06-11"), ("anna", "bert")]:
        one_side = facts_of([TurnSpec(prompt="Go.", answer=a)])
        other = facts_of([TurnSpec(prompt="Go.", answer=b)], "b")
        assert not compare(one_side, other).same


@pytest.mark.requirement("comparison.narrowed")
def test_a_comparison_is_narrowed_to_aspects_and_to_a_turn():
    def edit(turns: list[TurnSpec]) -> None:
        set_answer(turns)
        set_args(turns)
        set_model(turns)

    comparison = compare_edited(edit)
    tools = narrow_comparison(comparison, aspects=frozenset({"tools"}))
    assert (tools.same, tools.aspects, list(differences(tools))) == (False, ["tools"], [1])
    second = narrow_comparison(comparison, turn=2)
    assert (second.same, len(second.turns)) == (True, 1)
    plans = narrow_comparison(comparison, aspects=frozenset({"plans"}))
    assert (plans.same, [turn.status for turn in plans.turns]) == (True, ["same"] * 4)


@pytest.mark.requirement("comparison.figures")
def test_time_tokens_and_cost_stand_beside_each_turn_and_time_decides_nothing():
    comparison = compare_edited(lambda turns: turns)
    turn = comparison.turns[2]
    assert turn.a is not None
    assert turn.b is not None
    assert turn.a.figures == Figures(
        duration_ms=6_000.0, input_tokens=100, total_tokens=100, cost_usd=0.1
    )
    assert turn.b.figures == msgspec.structs.replace(turn.a.figures, duration_ms=18_000.0)
    assert comparison.same


@pytest.mark.requirement("comparison.order")
def test_repeats_and_the_order_of_arrival_change_nothing():
    facts = facts_of(build_turns())
    shuffled = [*facts[:3], *reversed(facts[3:40]), *facts[40:], *facts[5:20]]
    assert compare(facts, shuffled).same


@pytest.mark.requirement("comparison.order")
def test_facts_of_other_threads_are_left_out():
    facts = facts_of(build_turns())
    others = facts_of([TurnSpec(prompt="Something else.", answer="Yes.")], "z")
    assert compare(facts, [*facts, *others]).same


@pytest.mark.requirement("comparison.contract")
def test_a_comparison_is_read_back_as_it_was_written():
    comparison = compare(stream("approval_granted"), stream("approval_denied"))
    assert msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison) == comparison


@pytest.mark.requirement("comparison.contract")
def test_accounts_can_be_made_once_and_compared_often():
    a, b = build_account(stream("coding_fixed")), build_account(stream("coding_failed"))
    assert compare(a, b) == compare(stream("coding_fixed"), stream("coding_failed"))
    assert compare(a, a).aspects == list(ASPECTS)


@pytest.mark.requirement("comparison.contract")
def test_nothing_compared_with_nothing_is_the_same():
    assert compare([], []).same
    assert [turn.status for turn in compare([], facts_of(build_turns())).turns] == ["only_b"] * 4
