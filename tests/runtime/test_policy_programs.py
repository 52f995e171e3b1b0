"""Programs, as far as they are known: what may run something else asks, and what agents run all day
does not.
"""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.runtime.policy import Policy, PolicyRequest, evaluate, follow_links
from factwire.runtime.policy.request_parts import may_overlap
from factwire.runtime.policy.shell_syntax import ANYTHING, SOME
from tests.runtime.ordinary_commands import ORDINARY
from tests.runtime.policy_cases import WORKSPACE, decide, run

UNCLEAR = [
    *("git push --exe=x", "git push --rece=x", "git clone --up x y"),
    *(
        "echo x | sh",
        "sh",
        "bash -s",
        "sh < s",
        "echo x | xargs -I{} sh -c {}",
        "xargs -I% bash -c %",
    ),
    *("compgen -C 'x'", "compgen -W '$(x)'", "test -v 'a[$(x)]'", "[ -v 'a[$(x)]' ]", "test -R x"),
    *(
        "printf -v x y",
        "printf -vx y",
        "fakeroot x",
        "sg root -c x",
        "linux64 x",
        "linux32 x",
        "setarch x",
    ),
    *(
        "choom -n 0 x",
        "/lib64/ld-linux-x86-64.so.2 /bin/ls",
        "/lib/ld-musl-x86_64.so.1 ls",
        "ld.so ls",
    ),
    *(
        "env -S 'ls'",
        "git -c a.b=c status",
        "git -c alias.x=!y x",
        "git unknown-verb",
        "git -p log",
    ),
    *("git config alias.x '!y'", "git config core.pager x", "git clone -c a=b x", "git grep -Ox y"),
    *(
        "git rebase -x y main",
        "git fetch --upload-pack=x",
        "git submodule foreach x",
        "git difftool",
    ),
    *(
        "git ls-remote ext::x",
        "git diff --ext-diff",
        "git --exec-path=x status",
        "git bisect run x",
    ),
    *(
        "tar cf x y --checkpoint-action=exec=z",
        "tar xf x --to-command=y",
        "tar -I x -cf y z",
        "tar cIf x y z",
    ),
    *(
        "awk 'BEGIN{system(\"x\")}'",
        "awk '{print | \"x\"}'",
        "awk '{print > \"x\"}'",
        "awk -f x",
        "sed -f x",
    ),
    *(
        "awk '\"x\" | getline'",
        "sed 1ex f",
        "sed 's/a/b/e' f",
        "sed 's/a/b/w x' f",
        "sed 'w x' f",
        "sed 'r x' f",
    ),
    *(
        "sort --compress-program=x f",
        "split --filter=x f",
        "rg --pre=x y",
        "zip -T -TT x y",
        "install -s x y",
    ),
    *(
        "vim -c '!x'",
        "less '+!x' f",
        "man -P x y",
        "ssh -o ProxyCommand=x y",
        "rsync -e x y z",
        "make X=y",
    ),
    *(
        "make --eval=x",
        "make -f x",
        "find . -fprintf x y",
        "find . -exec ./{} ;",
        "watch x",
        "busybox x",
    ),
]


OPAQUE = [
    *("go env -w CC=x", "go build -ldflags=-extld=x", "pylint --init-hook=x y"),
    *(
        "make",
        "make test",
        "./run.sh",
        "bash run.sh",
        "python x.py",
        "python -c x",
        "python -",
        "node x.js",
    ),
    *(
        "perl -e x",
        "npx x",
        "unknown",
        "unknown x",
        "/opt/bin/ls",
        "./ls",
        "docker run x",
        "ssh host ls",
    ),
    *(
        "cargo run",
        "go run .",
        "go test -exec x ./...",
        "npm exec x",
        "pytest -p x",
        "uv run python x.py",
    ),
    *(
        "GIT_EXTERNAL_DIFF=x git diff",
        "LD_PRELOAD=x ls",
        "git $X",
        "sed $X f",
        "awk $X f",
        "tar $X f",
    ),
]


@pytest.mark.requirement("runtime.policy.programs")
@pytest.mark.parametrize("command", UNCLEAR)
def test_a_command_that_hides_what_it_runs_is_allowed_by_no_rule(command: str):
    name = command.split(maxsplit=1)[0]
    assert decide(f"+Bash  +Bash({name} *)", run(command)) == ("ask", "unclear_command")


@pytest.mark.requirement("runtime.policy.programs")
@pytest.mark.parametrize("command", OPAQUE)
def test_a_program_that_is_not_known_needs_a_rule_that_names_it(command: str):
    words = command.split()
    name = " ".join(words[:2] if "=" in words[0] else words[:1])
    inner = "+Bash(python *)  " if name == "uv" else ""
    forbidding = "  !Bash(rm *)"
    assert decide("+Bash", run(command)) == ("allow", "rule_allow")
    assert decide(f"+Bash{forbidding}", run(command)) == ("ask", "may_reach_forbidden")
    assert decide(f"+Bash(*){forbidding}", run(command)) == ("ask", "may_reach_forbidden")
    unresolved = "$" in command
    if not unresolved:
        named = f"{inner}+Bash({name} *){forbidding}"
        assert decide(named, run(command)) == ("allow", "rule_allow")


@pytest.mark.requirement("runtime.policy.programs")
@pytest.mark.parametrize("command", ["wrap rm x", "wrap -n 0 -- rm x", "wrap -x rm", "wrap $X"])
def test_a_rule_for_an_unknown_program_does_not_cover_what_another_denies(command: str):
    assert decide("+Bash(wrap *)  !Bash(rm *)", run(command)) == ("ask", "may_reach_forbidden")


@pytest.mark.requirement("runtime.policy.programs")
def test_few_of_the_commands_that_agents_run_all_day_ask():
    policy = Policy.of(
        allow=["Bash"], ask=["Bash(git push *)"], deny=["Bash(rm -rf *)", "Read(**/.env)"]
    )

    folders = frozenset({".", "src", "tests", "docs"})

    def count_asking(*, confined: bool) -> int:
        requests = (
            msgspec.structs.replace(run(line), confined=confined, folders=folders)
            for line in ORDINARY
        )
        return sum(evaluate(policy, request).decision != "allow" for request in requests)

    assert count_asking(confined=True) <= 0.08 * len(ORDINARY)
    assert count_asking(confined=False) <= 0.13 * len(ORDINARY)


RULES = "+Bash  !Read(**/.env)  !Read(keys/**)  !Edit(conf/prod.yml)  !Read(/etc/secret)"

TOUCHING = [
    *("grep -vhf.env x", "date -f .e*", "curl -F 'a=<.env' x", "curl file://$PWD/.env"),
    *(
        "cat .env",
        "cat sub/.env",
        "cat .e*",
        "cat .en?",
        "cat .[e]nv",
        "cat {.env,x}",
        "cat $X",
        "cat */.env",
    ),
    *(
        "cat $PWD/.env",
        "cat ~/.env",
        "cat `x`",
        "cat /proc/self/cwd/.env",
        "cat /proc/$$/cwd/.env",
        "cat *",
    ),
    *(
        "cd conf && cat prod.yml",
        "cd x; cat .env",
        "git show HEAD:.env",
        "curl -d @.env x",
        "dd if=.env",
    ),
    *(
        "head -c9 keys/a",
        "cat keys/*",
        "cat k*/a",
        "cat -- .ENV",
        "grep -f.env x",
        "cp x conf/*.yml",
        "cat ../*/.env",
    ),
    *(
        "find . -exec cat {} +",
        "ls | xargs cat",
        "git -C conf show HEAD:prod.yml",
        "cat /etc/s*",
        "cat $D/secret",
    ),
]
SWEEPING = [
    "grep -r x .",
    "grep -R x",
    "rg x",
    "cp -r . /x",
    "tar cf - .",
    "git grep --no-index x",
    "diff -r a b",
]
CLEAR = [
    "cat a",
    "cat *.py",
    "ls *.ts",
    "cat src/*.js",
    "cat a.py b.ts",
    "cat env",
    "echo $X",
    "wc -l src/*.py",
]


@pytest.mark.requirement("runtime.policy.path-rules")
@pytest.mark.parametrize("command", TOUCHING)
@pytest.mark.parametrize("confined", [True, False])
def test_a_path_that_a_rule_could_be_about_asks(command: str, confined: bool):
    request = msgspec.structs.replace(run(command), confined=confined)
    assert decide(RULES, request) == ("ask", "may_reach_forbidden")


@pytest.mark.requirement("runtime.policy.path-rules")
@pytest.mark.parametrize("command", SWEEPING)
def test_a_sweep_through_folders_asks_unless_the_sandbox_hides_what_is_denied(command: str):
    assert decide(RULES, run(command)) == ("ask", "may_reach_forbidden")
    inside = msgspec.structs.replace(run(command), confined=True)
    assert decide(RULES, inside) == ("allow", "rule_allow")
    assert decide(f"{RULES}  ?Read(**/*.pem)", inside) == ("ask", "may_reach_forbidden")


@pytest.mark.requirement("runtime.policy.path-rules")
@pytest.mark.parametrize("command", CLEAR)
def test_a_path_that_no_rule_can_be_about_does_not_ask(command: str):
    assert decide(RULES, run(command)) == ("allow", "rule_allow")


@pytest.mark.requirement("runtime.policy.path-rules")
def test_a_link_counts_as_what_it_leads_to(tmp_path: Path):
    (tmp_path / ".env").write_text("")
    (tmp_path / "link").symlink_to(".env")
    (tmp_path / "hooks").symlink_to(".git")
    (tmp_path / ".git").mkdir()

    def judge(rules: str, command: str, mode: str = "default") -> tuple[str, str]:
        request = PolicyRequest(tool="run", workspace=str(tmp_path), command=command)
        return decide(rules, follow_links(request), mode)  # pyright: ignore[reportArgumentType]

    assert judge("+Bash  !Read(**/.env)", "cat link") == ("ask", "may_reach_forbidden")
    assert judge("+Bash  !Read(**/.env)", "cat --file=link") == ("ask", "may_reach_forbidden")
    assert judge("+Bash  !Read(**/.env)", "cat < link") == ("deny", "rule_deny")
    assert judge("+Bash  !Edit(.env)", "ls > link") == ("deny", "rule_deny")
    assert judge("+Bash(ls)", "ls > hooks/post-commit", "acceptEdits") == ("ask", "protected_path")
    assert judge("+Bash(ls)", "ls > out", "acceptEdits") == ("allow", "rule_allow")
    assert judge("+Bash  !Read(**/.env)", "cat < /proc/self/cwd/.env") == ("ask", "unclear_path")


texts = st.text(st.sampled_from("ab/."), max_size=6)
wild = st.lists(st.sampled_from(["a", "b", "/", ".", SOME, ANYTHING]), max_size=6).map("".join)


def is_of(shape: str, text: str) -> bool:
    """Whether a text has a shape, by trying every length of each gap."""
    if not shape:
        return not text
    head, rest = shape[0], shape[1:]
    if head not in (SOME, ANYTHING):
        return text[:1] == head and is_of(rest, text[1:])
    ends = range(len(text) + 1)
    return any(is_of(rest, text[end:]) for end in ends if head == ANYTHING or "/" not in text[:end])


@pytest.mark.requirement("runtime.policy.path-rules")
@given(texts, wild, wild)
def test_two_shapes_of_one_text_overlap(text: str, one: str, other: str):
    if is_of(one, text) and is_of(other, text):
        assert may_overlap(one, other)
    assert may_overlap(one, text) == is_of(one, text)


LATER = [
    *(
        "Makefile",
        "GNUmakefile",
        "rules.mk",
        "CMakeLists.txt",
        "conftest.py",
        "tests/conftest.py",
        "setup.py",
    ),
    *(
        "setup.cfg",
        "pyproject.toml",
        "tox.ini",
        "noxfile.py",
        "x.pth",
        "sitecustomize.py",
        "usercustomize.py",
    ),
    *(
        "package.json",
        "web/package.json",
        ".npmrc",
        ".yarnrc.yml",
        "vite.config.ts",
        "jest.config.js",
        ".eslintrc.cjs",
    ),
    *(
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        "Jenkinsfile",
        ".husky/pre-commit",
    ),
    *(
        ".git/hooks/pre-commit",
        ".git/config",
        "sub/.git/config",
        ".gitmodules",
        ".gitattributes",
        ".githooks/x",
    ),
    *(
        ".pre-commit-config.yaml",
        "lefthook.yml",
        ".bashrc",
        ".zshenv",
        ".profile",
        ".envrc",
        ".inputrc",
        ".gdbinit",
    ),
    *(
        ".lldbinit",
        ".pdbrc",
        ".irbrc",
        ".vscode/tasks.json",
        ".vscode/settings.json",
        ".idea/x.xml",
        ".exrc",
    ),
    *(
        ".nvim.lua",
        ".dir-locals.el",
        "x.code-workspace",
        ".devcontainer/devcontainer.json",
        ".claude/settings.json",
    ),
    *(
        "CLAUDE.md",
        "AGENTS.md",
        ".codex/config.toml",
        ".cursor/rules/x",
        ".cursorrules",
        ".mcp.json",
        "opencode.json",
    ),
    *(
        "factwire.toml",
        ".factwire/x",
        "Dockerfile",
        "docker-compose.yml",
        "justfile",
        "Rakefile",
        "Gemfile",
    ),
    *(
        "build.rs",
        "Cargo.toml",
        ".cargo/config.toml",
        "build.gradle",
        "pom.xml",
        "gradlew",
        "BUILD.bazel",
    ),
    *(
        "composer.json",
        ".user.ini",
        "node_modules/x/index.js",
        "__pycache__/x.pyc",
        "flake.nix",
        ".ssh/config",
    ),
]
PLAIN = [
    "src/app.py",
    "README.md",
    "docs/build/page.md",
    "src/build/x.c",
    "tests/test_app.py",
    "web/src/App.tsx",
    "x.sh",
]


@pytest.mark.requirement("runtime.policy.code-later")
@pytest.mark.parametrize("path", LATER)
def test_a_file_that_runs_code_later_is_not_edited_by_a_mode_alone(path: str):
    for name in (path, path.upper(), path.title(), f"deep/er/{path}", f"src/../{path}"):
        request = PolicyRequest(tool="Edit", workspace=WORKSPACE, paths=(name,))
        assert decide("", request, "acceptEdits") == ("ask", "protected_path"), name
        assert decide("", request, "dontAsk")[0] == "deny"
    assert decide("+Bash(ls)", run(f"ls > {path}"), "acceptEdits") == ("ask", "protected_path")


@pytest.mark.requirement("runtime.policy.code-later")
@pytest.mark.parametrize("path", PLAIN)
def test_other_files_are_edited_without_asking(path: str):
    request = PolicyRequest(tool="Edit", workspace=WORKSPACE, paths=(path,))
    assert decide("", request, "acceptEdits") == ("allow", "edit_in_workspace")
