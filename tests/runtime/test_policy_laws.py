"""Laws of a policy, over generated rules and requests."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factwire.runtime.policy import (
    MODES,
    Policy,
    PolicyRequest,
    PolicyRule,
    RuleError,
    assess_risk,
    evaluate,
    parse_rule,
    propose_rule,
    show_request,
)
from factwire.runtime.policy.command_wrappers import read_command
from tests.runtime.policy_cases import WORKSPACE, run

STRENGTH = ("allow", "ask", "deny")

SIMPLE = ["ls", "git status", "git log -1", "rm x", "make all", "env A=1 ls", "sudo ls", "cat .env"]

simple = st.sampled_from(SIMPLE)
joined = st.lists(simple, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(["; ", " && ", " || ", " | ", "\n"]).map(
        lambda operator: operator.join(parts)
    )
)
garbage = st.text(st.sampled_from("ab rm;|&$()`'\"\\\n\t#<>{}*?~=!-/.0é\u202e"), max_size=30)
paths = st.sampled_from(
    ["a", "src/a.py", "src/../x", "../x", "/etc/passwd", ".git/config", ".env", "docs"]
)
requests = st.one_of(
    (joined | garbage).map(run),
    st.lists(st.text("abrm ;", max_size=4), max_size=3).map(lambda argv: run(tuple(argv))),
    st.builds(
        PolicyRequest,
        tool=st.sampled_from(["Read", "Edit", "Write", "Grep", "deploy", "delete"]),
        workspace=st.just(WORKSPACE),
        paths=st.lists(paths, max_size=2).map(tuple),
    ),
    st.sampled_from(["https://example.org/x", "https://a@b", "x"]).map(
        lambda url: PolicyRequest(tool="WebFetch", workspace=WORKSPACE, url=url)
    ),
)
rules = st.sampled_from(
    [
        *(
            "*",
            "Bash",
            "Read",
            "Edit",
            "deploy",
            "WebFetch",
            "Bash(git *)",
            "Bash(ls)",
            "Bash(* x)",
        ),
        *(
            "Bash(rm *)",
            "Bash(git status *)",
            "Bash(*)",
            "Read(src/**)",
            "Read(**/.env)",
            "Edit(**)",
        ),
        *(
            "Edit(/etc/**)",
            "Read(.env)",
            "WebFetch(domain:example.org)",
            "deploy(src/**)",
            "Read(/**)",
        ),
    ]
).map(parse_rule)
lists = st.lists(rules, max_size=3).map(tuple)
policies = st.builds(Policy, mode=st.sampled_from(MODES), allow=lists, ask=lists, deny=lists)


def strength(policy: Policy, request: PolicyRequest) -> int:
    return STRENGTH.index(evaluate(policy, request).decision)


def with_rule(policy: Policy, name: str, rule: PolicyRule) -> Policy:
    return msgspec.structs.replace(policy, **{name: (*getattr(policy, name), rule)})


@pytest.mark.requirement("runtime.policy.laws")
@given(policies, requests, rules)
def test_a_rule_that_denies_by_itself_denies_whatever_else_there_is(
    policy: Policy, request: PolicyRequest, rule: PolicyRule
):
    alone = Policy(deny=(rule,))
    if evaluate(alone, request).reason_code == "rule_deny":
        assert evaluate(with_rule(policy, "deny", rule), request).decision == "deny"


@pytest.mark.requirement("runtime.policy.laws")
@given(policies, requests, rules)
def test_one_more_denial_never_widens(policy: Policy, request: PolicyRequest, rule: PolicyRule):
    assert strength(with_rule(policy, "deny", rule), request) >= strength(policy, request)


@pytest.mark.requirement("runtime.policy.laws")
@given(policies, requests, rules)
def test_one_more_question_never_widens(policy: Policy, request: PolicyRequest, rule: PolicyRule):
    assert strength(with_rule(policy, "ask", rule), request) >= strength(policy, request)


@pytest.mark.requirement("runtime.policy.laws")
@given(policies, requests, rules)
def test_one_more_permission_never_overrides_a_rule_that_asks_or_denies(
    policy: Policy, request: PolicyRequest, rule: PolicyRule
):
    before = evaluate(policy, request)
    if before.reason_code in ("rule_ask", "rule_deny", "may_reach_forbidden", "plan_mode"):
        assert evaluate(with_rule(policy, "allow", rule), request).decision == before.decision


@pytest.mark.requirement("runtime.policy.laws")
@given(policies, st.lists(simple, min_size=1, max_size=4), st.sampled_from([";", "&&", "|", "\n"]))
def test_a_compound_is_decided_as_its_strictest_part(
    policy: Policy, parts: list[str], operator: str
):
    whole = strength(policy, run(operator.join(parts)))
    assert whole == max(strength(policy, run(part)) for part in parts)


@pytest.mark.requirement("runtime.policy.laws")
@given(policies, requests)
def test_the_order_of_modes(policy: Policy, request: PolicyRequest):
    def under(mode: str) -> int:
        return strength(msgspec.structs.replace(policy, mode=mode), request)

    assert under("acceptEdits") <= under("default") <= under("dontAsk")
    assert under("default") <= under("plan")
    assert evaluate(msgspec.structs.replace(policy, mode="dontAsk"), request).decision != "ask"


@pytest.mark.requirement("runtime.policy.proposals")
@given(requests)
def test_what_is_proposed_would_have_allowed_the_request(request: PolicyRequest):
    rule = propose_rule(request)
    if rule is not None:
        assert parse_rule(str(rule)) == rule
        assert evaluate(Policy(allow=(rule,)), request).decision == "allow"


@pytest.mark.fuzz
@pytest.mark.requirement("runtime.policy.laws")
@settings(max_examples=2_000)
@given(garbage | st.text(st.characters(), max_size=40))
def test_garbage_is_never_allowed_and_nothing_is_ever_raised(text: str):
    narrow = Policy.of(allow=["Bash(git status *)", "Bash(true)"], deny=["Bash(curl *)"])
    evaluation = evaluate(narrow, run(text))
    commands = read_command(text).commands
    if evaluation.decision == "allow":
        names = {command.words[:2] for command in commands if command.words}
        assert names <= {("git", "status"), ("true",)}
    assert assess_risk(run(text))
    assert show_request(run(text))
    propose_rule(run(text))


@pytest.mark.fuzz
@pytest.mark.requirement("runtime.policy.syntax")
@settings(max_examples=1_000)
@given(st.text(st.sampled_from("Bashed(*)/.~'\"\\ :x\u202e"), max_size=20))
def test_a_text_is_a_rule_or_is_refused(text: str):
    try:
        rule = parse_rule(text)
    except RuleError:
        return
    assert parse_rule(str(rule)) == rule
    evaluate(Policy(allow=(rule,), deny=(rule,), ask=(rule,)), run("ls x"))


APPROVED = ("make test", "./run.sh a", "python3 app.py", "git commit -m x", "cat README.md")
BEHIND = (
    *("; id", " && id", "|| id", "| sh", "& id", "\nid", "\r\nid", " $(id)", " `id`", " <(id)"),
    *(" > x", " >> .bashrc", " < /etc/passwd", " extra", " -f other", " *", " $X", " ~", " {a,b}"),
    *(
        " #\nid",
        "\\\n; id",
        "\u2028id",
        "\x0bid",
        "\uff1bid",
        " \u200bx",
        "'' ; id",
        " 2>&1 | tee x",
    ),
)
BEFORE = (
    *("id; ", "id | ", "X=1 ", "PATH=. ", "LD_PRELOAD=x ", "BASH_ENV=x ", "GIT_DIR=/x ", "sudo "),
    *(
        "env X=1 ",
        "xargs ",
        "cd / && ",
        "cd ..; ",
        "{ id; } ; ",
        "if ",
        "alias x=y; ",
        "f() { id; }; ",
    ),
    *("./", "/tmp/", "\u200b", "eval ", ". ", "exec -a x ", "find . -exec "),
)


@pytest.mark.requirement("runtime.policy.proposals")
@pytest.mark.parametrize("command", APPROVED)
def test_the_rule_for_a_command_allows_no_other_command(command: str):
    rule = propose_rule(run(command))
    assert rule is not None
    allowing = Policy(allow=(rule,))
    assert evaluate(allowing, run(command)).decision == "allow"
    lines = [*(command + end for end in BEHIND), *(start + command for start in BEFORE)]
    lines += [start + command + end for start in BEFORE[::5] for end in BEHIND[::5]]
    lines += [command.upper(), command.replace(" ", "\u00a0"), command.replace("a", "\u0430")]
    others = [line for line in lines if line != command]
    assert [line for line in others if evaluate(allowing, run(line)).decision == "allow"] == []
