"""Rules as text: what is read, what is refused, and what is proposed."""

import pytest

from factwire.runtime.policy import (
    RISKS,
    PolicyRequest,
    PolicyRule,
    RuleError,
    assess_risk,
    parse_rule,
    propose_rule,
)
from factwire.runtime.policy.policy_rules import command_tokens
from tests.runtime.policy_cases import WORKSPACE, decide, fetch, run, use


@pytest.mark.requirement("runtime.policy.syntax")
@pytest.mark.parametrize(
    ("text", "tool", "pattern", "kind"),
    [
        ("*", "*", None, None),
        ("search", "search", None, None),
        (" Read ", "Read", None, None),
        ("mcp__github__*", "mcp__github__*", None, None),
        ("Bash(git status *)", "Bash", "git status *", "command"),
        ("Bash(echo (a))", "Bash", "echo (a)", "command"),
        ("shell(ls)", "shell", "ls", "command"),
        ("Read(src/**)", "Read", "src/**", "path"),
        ("Write(./docs/**)", "Write", "./docs/**", "path"),
        ("deploy(prod/*)", "deploy", "prod/*", "path"),
        ("Read(domain:x)", "Read", "domain:x", "path"),
        ("WebFetch(domain:example.org)", "WebFetch", "domain:example.org", "domain"),
        ("mcp__web__get(domain:*.example.org)", "mcp__web__get", "domain:*.example.org", "domain"),
    ],
)
def test_a_rule_is_a_tool_and_maybe_a_pattern(
    text: str, tool: str, pattern: str | None, kind: str | None
):
    rule = parse_rule(text)
    assert (rule.tool, rule.pattern, rule.kind) == (tool, pattern, kind)
    assert parse_rule(str(rule)) == rule


@pytest.mark.requirement("runtime.policy.syntax")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected Tool or Tool"),
        ("Bash(", "expected Tool or Tool"),
        ("Bash)", "expected Tool or Tool"),
        ("(x)", "expected Tool or Tool"),
        ("Ba sh", "expected Tool or Tool"),
        ("Bаsh", "expected Tool or Tool"),  # noqa: RUF001
        ("Bash()", "expected a pattern"),
        ("Bash( )", "expected a pattern"),
        ("*(src/**)", "a pattern needs one tool"),
        ("mcp__*(src)", "a pattern needs one tool"),
        ("Bash(git 'status)", "unclosed quote or trailing backslash"),
        ("Bash(git \\)", "unclosed quote or trailing backslash"),
        ("Read(../x)", "a path pattern cannot contain '..'"),
        ("Read(src/../x)", "a path pattern cannot contain '..'"),
        ("Read(~/x)", "home folder"),
        ("Read(src\\x)", "separate the segments of a path with '/'"),
        ("Read(src/**.py)", "must be a path segment of its own"),
        ("WebFetch(domain:)", "expected domain"),
        ("WebFetch(domain:a b)", "expected domain"),
        ("WebFetch(domain:*)", "expected domain"),
        ("Bash(git\u202estatus)", "printable"),
        ("Bash(git\nstatus)", "printable"),
        ("Read(" + "x" * 3_000 + ")", "at most 2000"),
    ],
)
def test_what_is_no_rule_is_refused_with_what_was_expected(text: str, words: str):
    with pytest.raises(RuleError, match=words.replace("(", r"\(").replace("*", r"\*")):
        parse_rule(text)


@pytest.mark.requirement("runtime.policy.syntax")
@pytest.mark.parametrize(
    ("pattern", "tokens"),
    [
        ("git status", [("git",), ("status",)]),
        ("git *", [("git",), (None,)]),
        ("git  log", [("git",), ("log",)]),
        ("npm run test:*", [("npm",), ("run",), ("test",), (None,)]),
        ("a*b", [("a", None, "b")]),
        (r"a\*b '*' \* \ ", [("a*b",), ("*",), ("*",), (" ",)]),
        ("'a b' \"c d\" ''", [("a b",), ("c d",), ("",)]),
        (r"'a\b' \"", [("a\\b",), ('"',)]),
    ],
)
def test_a_command_pattern_is_read_word_by_word(pattern: str, tokens: list[tuple[str | None, ...]]):
    assert command_tokens(pattern) == tokens


PROPOSALS: list[tuple[PolicyRequest, str | None]] = [
    (run("git status"), "Bash(git status *)"),
    (run("git status -s"), "Bash(git status *)"),
    (run("ls -la src"), "Bash(ls *)"),
    (run("make test"), "Bash(make test)"),
    (run(("make", "test")), "Bash(make test)"),
    (run("git commit -m 'fix it'"), "Bash(git commit -m 'fix it')"),
    (run('grep "it\'s *" a'), "Bash(grep 'it'\\''s *' a)"),
    (run("bash -c 'make test'"), "Bash(make test)"),
    (run("LANG=C make"), "Bash(make)"),
    (run("X=1 make"), None),
    (run("make; ls"), None),
    (run("make $X"), None),
    (run("make > out"), None),
    (run("for x in a; do ls; done"), None),
    (run("sudo ls"), None),
    (run("rm -rf build"), None),
    (run("rm a"), "Bash(rm a)"),
    (run(""), None),
    (use("Edit", "docs/a.md"), "Edit(./docs/a.md)"),
    (use("Write", "docs/a.md", "docs/b.md"), "Edit(./docs/**)"),
    (use("Write", "docs/a.md", "src/b.md"), None),
    (use("Write", "docs/a.md", "/etc/x"), None),
    (use("Write", "a*.md"), None),
    (use("Write", "a\u202e.md"), None),
    (use("Read", "/etc/hosts"), "Read(/etc/hosts)"),
    (use("Grep", "/etc/ssl"), "Read(/etc/ssl/**)"),
    (fetch("https://Example.org/x"), "WebFetch(domain:example.org)"),
    (fetch("https://a@b/x"), None),
    (use("WebSearch"), "WebSearch"),
    (use("mcp__github__create_issue"), "mcp__github__create_issue"),
    (use("no name"), None),
    (use("*"), None),
    (use("deploy", "src"), None),
]


@pytest.mark.requirement("runtime.policy.proposals")
@pytest.mark.parametrize(("request_", "expected"), PROPOSALS)
def test_the_narrowest_rule_is_proposed(request_: PolicyRequest, expected: str | None):
    rule = propose_rule(request_)
    assert (None if rule is None else str(rule)) == expected
    if rule is not None:
        assert parse_rule(str(rule)) == rule
        assert decide(f"+{rule}", request_) == ("allow", "rule_allow")


@pytest.mark.requirement("runtime.policy.proposals")
def test_a_proposal_covers_nothing_else():
    rule = propose_rule(run("make test"))
    assert rule == PolicyRule("Bash", "make test")
    for other in ("make", "make test x", "make install", "make test; rm x", "make 'test x'"):
        assert decide(f"+{rule}", run(other))[0] == "ask"


RISK_ROWS: list[tuple[PolicyRequest, str]] = [
    (use("Read", "src/a.py"), "low"),
    (use("TodoWrite"), "low"),
    (use("Read", "/etc/passwd"), "medium"),
    (use("Edit", "src/a.py"), "medium"),
    (use("Edit", "/etc/passwd"), "high"),
    (use("Edit", ".git/config"), "high"),
    (use("deploy"), "high"),
    (use("WebSearch"), "high"),
    (fetch("https://example.org"), "high"),
    (run("make"), "medium"),
    (run("ls; cat x"), "medium"),
    (run("rm x"), "high"),
    (run("/bin/rm x"), "high"),
    (run("curl https://example.org"), "high"),
    (run("timeout 5 curl x"), "high"),
    (run("git push"), "high"),
    (run("pip install x"), "high"),
    (run("make > /etc/x"), "high"),
    (run("for x in a; do b; done"), "high"),
    (run("git push --force"), "critical"),
    (run("rm -rf build"), "critical"),
    (run("rm -fr build"), "critical"),
    (run("rm --recursive build"), "critical"),
    (run("ls; rm -r x"), "critical"),
    (run("sudo ls"), "critical"),
    (run("curl x | sh"), "critical"),
    (run("curl x | python3 -"), "critical"),
    (run("dd if=a of=b"), "critical"),
    (run("mkfs.ext4 a"), "critical"),
    (run("npm publish"), "critical"),
    (run("bash -c 'rm -rf x'"), "critical"),
    (run(("rm", "-r", "x")), "critical"),
    (PolicyRequest(tool="Read", workspace=WORKSPACE, command="rm -r x"), "critical"),
]


@pytest.mark.requirement("runtime.policy.risk")
@pytest.mark.parametrize(("request_", "risk"), RISK_ROWS)
def test_the_worst_part_is_the_risk(request_: PolicyRequest, risk: str):
    assert assess_risk(request_) == risk
    assert risk in RISKS
