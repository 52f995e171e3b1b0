"""Modes × rules × requests: what is decided, and by which reason."""

import pytest

from factwire.runtime.policy import (
    MODES,
    REASONS,
    Evaluation,
    Mode,
    Policy,
    PolicyRequest,
    effect_of,
    evaluate,
    with_remedy,
)
from tests.runtime.policy_cases import WORKSPACE, decide, fetch, policy, run, use

ALLOW_READ = ("allow", "reading")
ALLOWED = ("allow", "rule_allow")
ASKED = ("ask", "rule_ask")
DENIED = ("deny", "rule_deny")
PLAN = ("deny", "plan_mode")
QUIET = ("deny", "dont_ask")
OUTSIDE = ("ask", "outside_workspace")
EDIT = ("ask", "edit_asks")
RUN = ("ask", "command_asks")
NET = ("ask", "network_asks")
TOOL = ("ask", "tool_asks")
IN_WORKSPACE = ("allow", "edit_in_workspace")
PROTECTED = ("ask", "protected_path")
NO_PATH = ("ask", "unclear_path")

REQUESTS: dict[str, PolicyRequest] = {
    "read": use("Read", "src/a.py"),
    "glob": use("Glob", "src"),
    "grep of the folder": use("Grep"),
    "lower case": use("read", "src/a.py"),
    "todo": use("TodoWrite"),
    "read outside": use("Read", "/etc/passwd"),
    "read by dots": use("Read", "src/../../other/x"),
    "read nothing": use("Read"),
    "edit": use("Edit", "src/a.py"),
    "patch": use("apply_patch", "src/a.py", "src/b.py"),
    "write outside": use("Write", "/etc/passwd"),
    "write one outside": use("Write", "src/a.py", "/etc/x"),
    "write git": use("Write", ".git/hooks/pre-commit"),
    "write deep git": use("Edit", "vendor/lib/.GIT/config"),
    "write policy": use("Edit", "factwire.toml"),
    "write nothing": use("Write"),
    "run": run("make"),
    "run argv": run(("make", "all")),
    "fetch": fetch("https://example.org/x"),
    "search the web": use("WebSearch"),
    "unknown": use("deploy"),
    "unknown on a path": use("deploy", "src/a.py"),
    "mcp": use("mcp__github__create_issue"),
    "a reader by its owner": use("lookup", effect="read"),
    "a liar": use("Write", "src/a.py", effect="read"),
    "a running reader": PolicyRequest(tool="Read", workspace=WORKSPACE, command="make"),
}

BY_MODE: dict[str, tuple[tuple[str, str], ...]] = {
    "read": (ALLOW_READ, ALLOW_READ, ALLOW_READ, ALLOW_READ),
    "glob": (ALLOW_READ, ALLOW_READ, ALLOW_READ, ALLOW_READ),
    "grep of the folder": (ALLOW_READ, ALLOW_READ, ALLOW_READ, ALLOW_READ),
    "lower case": (ALLOW_READ, ALLOW_READ, ALLOW_READ, ALLOW_READ),
    "todo": (ALLOW_READ, ALLOW_READ, ALLOW_READ, ALLOW_READ),
    "read outside": (OUTSIDE, OUTSIDE, OUTSIDE, QUIET),
    "read by dots": (OUTSIDE, OUTSIDE, OUTSIDE, QUIET),
    "read nothing": (NO_PATH, NO_PATH, NO_PATH, QUIET),
    "edit": (EDIT, IN_WORKSPACE, PLAN, QUIET),
    "patch": (EDIT, IN_WORKSPACE, PLAN, QUIET),
    "write outside": (EDIT, OUTSIDE, PLAN, QUIET),
    "write one outside": (EDIT, OUTSIDE, PLAN, QUIET),
    "write git": (EDIT, PROTECTED, PLAN, QUIET),
    "write deep git": (EDIT, PROTECTED, PLAN, QUIET),
    "write policy": (EDIT, PROTECTED, PLAN, QUIET),
    "write nothing": (NO_PATH, NO_PATH, PLAN, QUIET),
    "run": (RUN, RUN, PLAN, QUIET),
    "run argv": (RUN, RUN, PLAN, QUIET),
    "fetch": (NET, NET, PLAN, QUIET),
    "search the web": (NET, NET, PLAN, QUIET),
    "unknown": (TOOL, TOOL, PLAN, QUIET),
    "unknown on a path": (TOOL, TOOL, PLAN, QUIET),
    "mcp": (TOOL, TOOL, PLAN, QUIET),
    "a reader by its owner": (ALLOW_READ, ALLOW_READ, ALLOW_READ, ALLOW_READ),
    "a liar": (EDIT, IN_WORKSPACE, PLAN, QUIET),
    "a running reader": (RUN, RUN, PLAN, QUIET),
}


@pytest.mark.requirement("runtime.policy.modes")
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_mode_decides_where_no_rule_does(name: str, mode: Mode):
    assert decide("", REQUESTS[name], mode) == BY_MODE[name][MODES.index(mode)]


RULES: list[tuple[str, str, tuple[str, str]]] = [
    # a tool by its name, a family, everything
    ("+*", "unknown", ALLOWED),
    ("+*", "run", ALLOWED),
    ("+*", "fetch", ALLOWED),
    ("+deploy", "unknown", ALLOWED),
    ("+Deploy", "unknown", ALLOWED),
    ("+dep", "unknown", TOOL),
    ("+dep*", "unknown", ALLOWED),
    ("+mcp__github__*", "mcp", ALLOWED),
    ("+mcp__gitlab__*", "mcp", TOOL),
    ("+Edit", "edit", ALLOWED),
    ("+Write", "edit", ALLOWED),
    ("+Edit", "patch", ALLOWED),
    ("+Edit", "write outside", ALLOWED),
    ("+Edit", "run", RUN),
    ("+Read", "read outside", ALLOWED),
    ("+Read", "edit", EDIT),
    ("+Bash", "run", ALLOWED),
    ("+Bash", "run argv", ALLOWED),
    ("+Bash", "a running reader", ALLOWED),
    ("+Read", "a running reader", RUN),
    ("!Read", "a running reader", DENIED),
    ("+WebFetch", "fetch", ALLOWED),
    ("+WebFetch", "search the web", NET),
    ("+Edit", "write nothing", NO_PATH),
    # deny beats ask beats allow
    ("!Read", "read", DENIED),
    ("!Read", "glob", DENIED),
    ("?Read", "read", ASKED),
    ("+Read  ?Read", "read", ASKED),
    ("+Read  ?Read  !Read", "read", DENIED),
    ("+*  !Edit", "patch", DENIED),
    ("+*  ?Edit", "patch", ASKED),
    ("+*  ?*", "run", ASKED),
    ("?*  !*", "unknown", DENIED),
    ("+Bash  !Bash(make)", "run", DENIED),
    ("+Bash  !Bash(make)", "run argv", ("ask", "may_reach_forbidden")),
    ("+Bash  +Bash(make *)  !Bash(make)", "run argv", ("ask", "may_reach_forbidden")),
    ("+Bash(make *)  !Bash(make)", "run argv", ALLOWED),
    ("+Bash(make)  ?Bash", "run", ASKED),
    ("!deploy", "mcp", TOOL),
    ("!mcp__*", "mcp", DENIED),
    ("!Edit", "a liar", DENIED),
    # paths
    ("+Edit(src/**)", "edit", ALLOWED),
    ("+Write(./src/**)", "edit", ALLOWED),
    ("+Edit(src/)", "edit", ALLOWED),
    ("+Edit(src/*)", "edit", ALLOWED),
    ("+Edit(src/*.py)", "patch", ALLOWED),
    ("+Edit(src/a.py)", "patch", EDIT),
    ("+Edit(src/a.py)  +Edit(src/b.py)", "patch", ALLOWED),
    ("+Edit(*)", "edit", EDIT),
    ("+Edit(**)", "edit", ALLOWED),
    ("+Edit(**/*.py)", "edit", ALLOWED),
    ("+Edit(SRC/**)", "edit", EDIT),
    ("!Edit(SRC/**)", "edit", DENIED),
    ("+Edit(**)", "write outside", EDIT),
    ("+Edit(**)", "write one outside", EDIT),
    ("+Edit(/etc/**)", "write outside", ALLOWED),
    ("+Edit(//etc/passwd)", "write outside", ALLOWED),
    ("+Edit(/srv/project/src/**)", "edit", ALLOWED),
    ("+Read(**)", "read by dots", OUTSIDE),
    ("+Read(src/**)", "read by dots", OUTSIDE),
    ("+Read(/srv/other/*)", "read by dots", ALLOWED),
    ("!Read(/srv/other/*)", "read by dots", DENIED),
    ("!Read(src/**)", "glob", DENIED),
    ("!Read(src/secret)", "glob", ("ask", "may_reach_forbidden")),
    ("?Read(**/.env)", "grep of the folder", ("ask", "may_reach_forbidden")),
    ("!Read(docs/**)", "glob", ALLOW_READ),
    ("!Read(**/.env)", "read", ALLOW_READ),
    ("+deploy(src/**)", "unknown on a path", ALLOWED),
    ("+deploy(docs/**)", "unknown on a path", TOOL),
    ("+deploy(src/**)", "unknown", TOOL),
    ("+Edit(src/**)", "unknown on a path", TOOL),
    ("+Edit(.git/**)", "write git", ALLOWED),
    # hosts
    ("+WebFetch(domain:example.org)", "fetch", ALLOWED),
    ("+WebFetch(domain:EXAMPLE.org)", "fetch", ALLOWED),
    ("+WebFetch(domain:*.example.org)", "fetch", NET),
    ("+WebFetch(domain:ample.org)", "fetch", NET),
    ("!WebFetch(domain:example.org)", "fetch", DENIED),
    ("+WebFetch(domain:example.org)", "search the web", NET),
    # commands
    ("+Bash(make)", "run", ALLOWED),
    ("+Bash(make *)", "run", ALLOWED),
    ("+Bash(make:*)", "run argv", ALLOWED),
    ("+Bash(make)", "run argv", RUN),
    ("+Bash(make all)", "run argv", ALLOWED),
    ("+Bash(m*)", "run", ALLOWED),
    ("+shell(make)", "run", RUN),
]


@pytest.mark.requirement("runtime.policy.rules")
@pytest.mark.parametrize(("rules", "name", "expected"), RULES)
def test_deny_beats_ask_beats_allow_beats_the_mode(
    rules: str, name: str, expected: tuple[str, str]
):
    assert decide(rules, REQUESTS[name]) == expected


@pytest.mark.requirement("runtime.policy.modes")
@pytest.mark.parametrize("name", [name for name in REQUESTS if BY_MODE[name][2] == PLAN])
def test_no_rule_widens_planning(name: str):
    assert decide("+*  +Bash  +Edit", REQUESTS[name], "plan") == PLAN
    assert decide("+*  ?*", REQUESTS[name], "plan") == PLAN
    assert decide("!*", REQUESTS[name], "plan") == DENIED


@pytest.mark.requirement("runtime.policy.modes")
@pytest.mark.parametrize("name", REQUESTS)
def test_where_nobody_is_to_be_asked_what_would_ask_is_denied(name: str):
    decision, _ = decide("", REQUESTS[name])
    assert decide("", REQUESTS[name], "dontAsk")[0] == ("deny" if decision == "ask" else decision)
    assert decide("?*", REQUESTS[name], "dontAsk") == QUIET
    assert decide("!*", REQUESTS[name], "dontAsk") == DENIED


@pytest.mark.requirement("runtime.policy.rules")
def test_an_evaluation_says_what_decided_and_why():
    assert evaluate(policy("+Bash(git *)  !Bash(rm *)"), run("git log; rm x")) == Evaluation(
        decision="deny",
        mode="default",
        rule="Bash(rm *)",
        reason_code="rule_deny",
        message="rm x: a rule denies it",
    )
    allowed = evaluate(policy("+Bash(git *)  +Bash(head *)"), run("git log | head; git log"))
    assert allowed.rule == "Bash(git *), Bash(head *)"
    assert evaluate(policy(), run("make")).rule is None
    quiet = evaluate(policy("", "dontAsk"), run("make"))
    assert quiet.message == (
        "make: it runs a command, and no rule applies; "
        "approval is required, but asking is turned off"
    )


@pytest.mark.requirement("runtime.policy.rules")
@pytest.mark.parametrize(
    ("rules", "remedy"),
    [
        ("", "; to allow it: --allow 'Bash(seq 1 9)'"),
        ("?Bash(seq *)", "; to be asked, choose a --policy other than dontAsk"),
    ],
)
def test_a_denial_for_want_of_somebody_to_ask_says_what_would_help(rules: str, remedy: str):
    strict = policy(rules, "dontAsk")
    denied = with_remedy(strict, run("seq 1 9"), evaluate(strict, run("seq 1 9")))
    assert denied.decision == "deny"
    assert denied.message.endswith(remedy)
    meant = policy("!Bash(seq *)", "dontAsk")
    plain = evaluate(meant, run("seq 1 9"))
    assert with_remedy(meant, run("seq 1 9"), plain) == plain


@pytest.mark.requirement("runtime.policy.rules")
def test_every_reason_stands_for_one_decision():
    assert {decision for decision, _ in REASONS.values()} == {"allow", "ask", "deny"}
    evaluations = [
        evaluate(policy(rules, mode), request)
        for rules in ("", "+*", "?*", "!*", "!Read(src/x)")
        for mode in MODES
        for request in REQUESTS.values()
    ]
    assert {REASONS[each.reason_code][0] == each.decision for each in evaluations} == {True}


@pytest.mark.requirement("runtime.policy.modes")
def test_a_mode_that_there_is_not_is_refused():
    with pytest.raises(
        ValueError, match="expected one of the modes default, acceptEdits, plan, dontAsk"
    ):
        Policy.of("bypassPermissions")  # pyright: ignore[reportArgumentType]


@pytest.mark.requirement("runtime.policy.effects")
@pytest.mark.parametrize(
    ("request_", "effect"),
    [
        (use("Read"), "read"),
        (use("Read", effect="other"), "other"),
        (use("Write", effect="read"), "edit"),
        (use("Read", diff="+x"), "edit"),
        (fetch("https://example.org", "Read"), "network"),
        (run("ls", effect="read"), "run"),
        (use("Rеad"), "other"),  # noqa: RUF001
        (use(""), "other"),
    ],
)
def test_the_worst_of_name_caller_and_content_counts(request_: PolicyRequest, effect: str):
    assert effect_of(request_) == effect


@pytest.mark.requirement("runtime.policy.paths")
@pytest.mark.parametrize(
    "path",
    [
        *("src\\..\\..\\x", "~/x", "", "src/a\u202e.py", "src/a\x00.py", "src/\u200ba.py"),
        *("src/a\nb", "src/\u00a0a.py", "src/a\x1b[0m.py"),
    ],
)
def test_a_path_without_a_normal_form_is_allowed_by_nothing(path: str):
    assert decide("+*  +Edit(**)  +Edit(/**)", use("Edit", path), "acceptEdits") == NO_PATH


@pytest.mark.requirement("runtime.policy.paths")
@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("src", True),
        (".", True),
        ("./src/./a", True),
        ("src/../a", True),
        ("/srv/project", True),
        ("/srv/project/../project/a", True),
        ("//srv/project/a", True),
        ("..", False),
        ("../project2/a", False),
        ("/srv/project2/a", False),
        ("/srv", False),
        ("src/../../../etc", False),
        ("/srv/project/../../etc", False),
        ("/", False),
    ],
)
def test_the_normal_form_says_where_a_path_lies(path: str, inside: bool):
    assert decide("", use("Edit", path), "acceptEdits") == (IN_WORKSPACE if inside else OUTSIDE)
    assert (decide("+Edit(**)", use("Edit", path)) == ALLOWED) == inside


@pytest.mark.requirement("runtime.policy.paths")
def test_a_workspace_that_is_not_absolute_holds_nothing():
    request = PolicyRequest(tool="Edit", workspace="project", paths=("a",))
    assert decide("+Edit(**)", request, "acceptEdits") == NO_PATH


@pytest.mark.requirement("runtime.policy.hosts")
@pytest.mark.parametrize(
    "url",
    [
        *("https://example.org@evil.example/", "https://example.org:x@evil.example/"),
        *("https://example.org\\@evil.example/", "https://example.org\\.evil.example"),
        *("https://evil.example#@example.org", "https://evil.example/example.org"),
        *("https://evil.example?https://example.org", "https://exаmple.org/"),  # noqa: RUF001
        *("https://example.org.evil.example/", "https://notexample.org/", "ftp://example.org/"),
        *("https:///example.org/", "example.org", "//example.org/", "https://example.org /x"),
        *("https://example.org\n.evil.example/", "https://example。org/", "https://[::1]/"),
        *("javascript:example.org", "https://example..org/", " https://example.org/", ""),
    ],
)
def test_a_url_that_only_looks_like_the_host_is_not_allowed(url: str):
    assert decide("+WebFetch(domain:example.org)", fetch(url))[0] == "ask"


@pytest.mark.requirement("runtime.policy.hosts")
@pytest.mark.parametrize(
    "url",
    [
        *("https://example.org", "http://example.org/", "https://EXAMPLE.org:8443/a?b=c#d"),
        *("https://example.org./x", "https://example.org?x=https://evil.example"),
    ],
)
def test_the_host_itself_is_allowed(url: str):
    assert decide("+WebFetch(domain:example.org)", fetch(url)) == ALLOWED
    below = url.replace("//", "//a.b.")
    assert decide("+WebFetch(domain:*.example.org)", fetch(below)) == ALLOWED
    assert decide("+WebFetch(domain:*.example.org)", fetch(url)) == NET
