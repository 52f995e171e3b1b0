"""Commands: nothing is allowed by a rule for something else."""

import pytest

from tests.runtime.policy_cases import decide, run

RULES = "+Bash(git status *)  +Bash(git log *)  +Bash(head *)  +Bash(echo *)"

ALLOWED = [
    *("git status", "git status -s", "  git status  ", "git\tstatus", "git status;", "git log -1"),
    *("git status; git log", "git status && git log", "git log || echo none", "git log | head -3"),
    *(
        "git status\ngit log",
        "git log |\n head",
        "git status &",
        "# why\ngit status",
        "git status #",
    ),
    *("git status # ; rm x", "git 'status'", 'git "status"', "g\\it status", "git \\\n status"),
    *("git log --format='%h; %s'", 'git log --grep="a && b"', "git log 'x|y'", "git log HEAD~1"),
    *("git log $BRANCH", "git log ${BRANCH}", 'git log "$BRANCH"', "git log *.py", "git log ~/x"),
    *("git log $(git status)", 'echo "$(git log)"', "git log `git status`", "git log {a,b}"),
    *(
        "git log 2>&1",
        "git log >/dev/null",
        "git log 2>/dev/null | head",
        "git log > /dev/null 2>&1",
    ),
    *("LANG=C git log", "NO_COLOR=1 CI=1 git log", "env LANG=C git log", "timeout 5 git log"),
    *(
        "timeout -k 1 5s git log",
        "nice -n 5 git log",
        "nohup git log",
        "time git log",
        "git log < src/a",
    ),
    *(
        "bash -c 'git log'",
        "bash -lc 'git status; git log'",
        'sh -c "git log"',
        "/bin/sh -c 'git log'",
    ),
    *(
        "bash -c 'bash -c \"git log\"'",
        "command git log",
        "stdbuf -oL git log",
        "echo a | xargs git log",
    ),
    *(
        "echo a | xargs -n1 git log",
        "echo a | xargs -I{} git log {}",
        "git log $(echo $(git status))",
    ),
    *("echo $", "echo a$", 'echo "a\\"b"', "echo '#'", "echo a#b", "echo \\;", "echo ';'"),
]

NOT_ALLOWED = [
    # a second command
    *("git status; rm -rf /", "git status && rm x", "git status || rm x", "git status | rm x"),
    *(
        "git status & rm x",
        "git status\nrm x",
        "git status;rm x",
        "git status&&rm x",
        "rm x; git status",
    ),
    *("git status |& rm x", "git log |\nrm x", "git status # x\nrm x", "# git status\nrm x"),
    *("git status $(rm x)", "git status `rm x`", 'git status "$(rm x)"', 'git status "`rm x`"'),
    *("git log $(echo $(rm x))", "git log $(git status; rm x)", "git log `git status; rm x`"),
    *(
        "git log <(rm x)",
        "git log >(rm x)",
        "git log $((1))",
        "git log $((`rm x`))",
        "git log ${X:-`rm x`}",
    ),
    *("git log ${X:-$(rm x)}", "git log ${X@P}", "git log $[1]", "git log $'x'", 'git log $"x"'),
    *("(git status)", "{ git status; }", "! git status", "if git status; then git log; fi"),
    *(
        "for x in a; do git status; done",
        "while git status; do git log; done",
        "git() { rm x; }; git status",
    ),
    *(
        "function git { rm x; }; git status",
        "case a in a) git status;; esac",
        "[[ a ]] && git status",
    ),
    *(
        "git status; }",
        "git status )",
        "git status ;; git log",
        "git status; ; git log",
        "&& git status",
    ),
    *("git status &&", "git status |", "git status | | git log", "coproc git status"),
    # another program
    *(
        "gitk status",
        "git-status",
        "./git status",
        "/tmp/git status",
        "/usr/bin/git status",
        "gi\\tk",
    ),
    *("GIT status", "gіt status", "git ѕtatus", "ｇｉｔ status", "git　status", "git\u00a0status"),  # noqa: RUF001
    *(
        "git\u200b status",
        "git status\u202e",
        "git\u2028status",
        "\ufeffgit status",
        "git status\x00",
    ),
    *(
        "git status\r\nrm x",
        "git status\x1b[2K",
        "git\x0bstatus",
        "git",
        "git push",
        "'git status'",
    ),
    *(
        "git -c core.pager=rm status",
        "git --exec-path=x status",
        "$GIT status",
        "`echo git` status",
    ),
    *(
        "$(echo git) status",
        "g* status",
        "{git,status}",
        "~/git status",
        "=git status",
        "'' git status",
    ),
    # what changes the meaning
    *(
        "PATH=x git status",
        "GIT_PAGER=rm git log",
        "LD_PRELOAD=x git status",
        "env GIT_PAGER=rm git log",
    ),
    *(
        "PATH=x; git status",
        "X=1",
        "export PATH=x; git status",
        "alias git=rm; git status",
        "set -x; git log",
    ),
    *(
        "source x; git status",
        ". x; git status",
        "eval git status",
        "exec git status",
        "trap 'rm x' EXIT",
    ),
    *("hash -p /tmp/x git; git status", "unset PATH; git status", "printf -v PATH x; git status"),
    *("read PATH; git status", "builtin git status", "X+=1 git status", "LANG=$(rm x) git log"),
    # what runs something else
    *(
        "sudo git status",
        "sudo -u me git status",
        "doas git status",
        "su -c 'git status'",
        "pkexec git log",
    ),
    *("bash -c 'git status; rm x'", "bash -c 'rm x'", 'bash -c "$X"', "bash -c", "bash x", "bash"),
    *(
        "bash --rcfile x -c 'git log'",
        "bash -o errexit -c 'git log'",
        "./bash -c 'git log'",
        "bash -s",
    ),
    *(
        "echo git status | bash",
        "echo x | sh",
        "fish -c 'git log'",
        "X=1 bash -c 'git log'",
        "bash <x",
    ),
    *(
        "env rm x",
        "env -S 'git status'",
        "env -C /x git status",
        "env --chdir=/x git status",
        "env",
    ),
    *(
        "timeout 5 rm x",
        "timeout git status",
        "nice rm x",
        "nohup rm x",
        "time rm x",
        "command rm x",
    ),
    *(
        "stdbuf -oL rm x",
        "./env git status",
        "xargs rm",
        "echo a | xargs rm",
        "echo a | xargs -a x git log",
    ),
    *(
        "echo a | xargs bash -c 'git log'; rm x",
        "echo a | xargs -n1 rm",
        "echo a | xargs $X git log",
    ),
    *("xargs -I{} {} status", "watch git status", "parallel git log ::: a", "script -c 'git log'"),
    *(
        "find . -exec rm {} ;",
        "flock x git status",
        "busybox rm x",
        "strace git log",
        "tmux new 'git log'",
    ),
    # files
    *(
        "git log > out",
        "git log >> out",
        "git log >| out",
        "git log &> out",
        "git log >& out",
        "> out",
    ),
    *(
        "git log > ../x",
        "git log > /etc/x",
        "git log > $X",
        "git log > *",
        "git log > `rm x`",
        "git log >",
    ),
    *(
        "git log <> out",
        "git log << E\nx\nE",
        "git log <<< x",
        "git log < /etc/passwd",
        "git log 3> out",
    ),
    *("git log 12>&1", "git log >&$X", "git log > 'a'$(rm x)", "git log > out; git status"),
    # what cannot be read
    *(
        "git status '",
        'git status "',
        "git status \\",
        "git status `",
        "git status $(",
        "git status ${",
    ),
    *(
        "",
        " ",
        "\n",
        "#",
        "# git status",
        ";",
        "&",
        "|",
        "(",
        ")",
        "''",
        '""',
        "\\",
        "$",
        "$()",
        "``",
    ),
    *(
        "git status " + "x" * 30_000,
        "; ".join(["git status"] * 300),
        "$(" * 50 + "git status" + ")" * 50,
    ),
    "bash -c " * 3 + "'git status'",
]


@pytest.mark.requirement("runtime.policy.commands")
@pytest.mark.parametrize("command", ALLOWED)
def test_a_command_is_allowed_when_each_simple_command_in_it_is(command: str):
    assert decide(RULES, run(command)) == ("allow", "rule_allow") or "<" in command
    assert decide(RULES, run(command))[0] == "allow"
    assert decide(RULES, run(command), "dontAsk")[0] == "allow"


@pytest.mark.requirement("runtime.policy.commands")
@pytest.mark.parametrize("command", NOT_ALLOWED)
def test_a_command_that_hides_another_is_not_allowed(command: str):
    assert decide(RULES, run(command))[0] == "ask"
    assert decide(RULES, run(command), "dontAsk") == ("deny", "dont_ask")


@pytest.mark.requirement("runtime.policy.commands")
@pytest.mark.parametrize(
    "command",
    [
        *("rm x", "/bin/rm x", "'rm' x", "r\\m x", "git log; rm x", "git log $(rm x)", "a `rm x`"),
        *("sudo rm x", "sudo -u me rm x", "env X=1 rm x", "X=1 rm x", "bash -c 'rm x'", "xargs rm"),
        *("timeout 5 rm x", "find . -exec rm {} +", "find . -delete", "rm x $((1))", "rm $X"),
        *("rm x; for a in b; do c; done", "rm x && (ls)"),
        *(
            "nohup nice env rm x",
            "bash -c 'bash -c \"rm x\"'",
            "./rm x",
            "rm",
            "a | rm > x",
        ),
    ],
)
def test_what_is_denied_is_denied_however_it_is_wrapped(command: str):
    assert decide("+Bash  !Bash(rm *)", run(command)) == ("deny", "rule_deny")


@pytest.mark.requirement("runtime.policy.commands")
@pytest.mark.parametrize(
    ("rules", "command", "expected"),
    [
        ("+Bash  !Bash(git push *)", "git $X", ("ask", "may_reach_forbidden")),
        ("+Bash  !Bash(git push *)", "git log $X", ("allow", "rule_allow")),
        ("+Bash  ?Bash(* --force)", "git push $X", ("ask", "may_reach_forbidden")),
        ("+Bash  ?Bash(* --force)", "git push --force", ("ask", "rule_ask")),
        ("+Bash  ?Bash(* --force)", "git push", ("allow", "rule_allow")),
        ("+Bash(sudo git *)", "sudo git log", ("allow", "rule_allow")),
        ("+Bash(sudo git *)  !Bash(git log *)", "sudo git log", ("deny", "rule_deny")),
        ("+Bash(X=1 make)", "X=1 make", ("allow", "rule_allow")),
        ("+Bash(X=1 make)", "X=2 make", ("ask", "command_asks")),
        ("+Bash(X=1 make)", "make", ("ask", "command_asks")),
        ("+Bash  !Bash(timeout *)", "timeout 5 make", ("deny", "rule_deny")),
        ("+Bash(find *)", "find . -name x", ("allow", "rule_allow")),
        ("+Bash(find *)", "find . -exec rm {} ;", ("ask", "unclear_command")),
        ("+Bash(find *)", "find . -exec rm {} \\;", ("ask", "command_asks")),
        ("+Bash(find *)  +Bash(rm *)", "find . -exec rm {} \\;", ("allow", "rule_allow")),
        ("+Bash(find *)  +Bash(env)", "find . -exec env + rm {} \\;", ("ask", "command_asks")),
        ("+Bash(find *)", "find . -delete", ("ask", "command_asks")),
        ("+Bash(find *)", "find . -fprint x", ("ask", "unclear_command")),
        ("+Bash(cat *)  !Read(.env)", "cat .env", ("ask", "may_reach_forbidden")),
        ("+Bash(cat *)  !Read(.env)", "cat src/../.env", ("ask", "may_reach_forbidden")),
        ("+Bash(cat *)  !Edit(x)", "cat --output=x", ("ask", "may_reach_forbidden")),
        ("+Bash(cat *)  !Read(.env)", "cat a", ("allow", "rule_allow")),
        ("+Bash(ls)", "ls > src/x", ("ask", "edit_asks")),
        ("+Bash(ls)  +Edit(src/**)", "ls > src/x", ("allow", "rule_allow")),
        ("+Bash(ls)  +Edit(src/**)", "ls > src/../x", ("ask", "edit_asks")),
        ("+Bash(ls)  !Edit(src/**)", "ls > src/x", ("deny", "rule_deny")),
        ("+Bash", "ls > src/x", ("allow", "rule_allow")),
        ("+Bash(ls)  +Bash(cd *)", "cd /; ls > x", ("ask", "unclear_command")),
        ("+Bash(ls)  +Bash(cd *)", "cd src && ls", ("allow", "rule_allow")),
        ("+Bash(ls)  !Read(/etc/**)", "ls < /etc/x", ("deny", "rule_deny")),
        ("+Bash(echo 'a b')", "echo 'a b'", ("allow", "rule_allow")),
        ("+Bash(echo 'a b')", "echo a b", ("ask", "command_asks")),
        ("+Bash(echo \\*)", "echo '*'", ("allow", "rule_allow")),
        ("+Bash(echo \\*)", "echo *", ("ask", "command_asks")),
        ("+Bash", "for x in a; do ls; done", ("ask", "unclear_command")),
        ("+Bash  !Bash(rm *)", "sudo bash -c 'rm x; rm y'", ("ask", "unclear_command")),
        ("+Bash", "git log $\\\n(ls)", ("ask", "unclear_command")),
        ("+Bash", "env X+=a ls", ("ask", "unclear_command")),
        ("!Bash", "for x in a; do ls; done", ("deny", "rule_deny")),
    ],
)
def test_rules_about_commands(rules: str, command: str, expected: tuple[str, str]):
    assert decide(rules, run(command)) == expected


@pytest.mark.requirement("runtime.policy.commands")
@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("git", "status"), "allow"),
        (("git", "status", "; rm x"), "allow"),
        (("git", "status; rm x"), "ask"),
        (("bash", "-lc", "git status"), "allow"),
        (("bash", "-lc", "git status; rm x"), "ask"),
        (("rm", "x"), "ask"),
        ((), "ask"),
        (("",), "ask"),
        (("gіt", "status"), "ask"),  # noqa: RUF001
    ],
)
def test_an_argv_is_seen_by_no_shell(argv: tuple[str, ...], expected: str):
    assert decide(RULES, run(argv))[0] == expected


@pytest.mark.requirement("runtime.policy.commands")
def test_redirected_edits_are_accepted_with_other_edits():
    rules = "+Bash(ls)"
    assert decide(rules, run("ls > src/x"), "acceptEdits")[0] == "allow"
    assert decide(rules, run("ls > .git/hooks/x"), "acceptEdits") == ("ask", "protected_path")
    assert decide(rules, run("ls > /etc/x"), "acceptEdits") == ("ask", "outside_workspace")
    assert decide(rules, run("ls > src/x"), "plan") == ("deny", "plan_mode")
