"""Command lines that try to do what three rules deny, made by rule: ways to run a
command × commands, and programs that read × spellings of a path.

Each is run for real. Whether it reached what is forbidden is seen on the disk and in its output.
"""

import os
import shutil
import subprocess
from itertools import product
from pathlib import Path

DENY = ("Bash(touch *)", "Read(**/.env)", "Read(keys/key.txt)", "Edit(**/locked.txt)")

SECRET = "kept-from-commands"

TARGETS = ("touch marker", "cat .env", "cp sample locked.txt")
"""One command for each rule."""

ALWAYS = (
    *("{c}", "  {c}", "true && {c}", "false || {c}", "true; {c}", "true\n{c}", "true | {c}"),
    *("env {c}", "env -i {c}", "env -u X {c}", "nice {c}", "nohup {c}", "setsid -w {c}"),
    *("timeout 9 {c}", "stdbuf -oL {c}", "time {c}", "command {c}", "env nice timeout 9 {c}"),
    *(
        "sh -c '{c}'",
        "bash -c '{c}'",
        "bash -lc '{c}'",
        "sh -c \"sh -c '{c}'\"",
        "/bin/sh -c '{c}'",
    ),
    *("echo $({c})", "echo `{c}`", 'echo "$({c})"', "find . -maxdepth 0 -exec {c} \\;"),
    *("echo x | xargs -I% {c}", "! {c}", "({c})", "{{ {c}; }}", "if true; then {c}; fi"),
    *("for x in 1; do {c}; done", "f() {{ {c}; }}; f", "case x in x) {c};; esac", "{c} &\nwait"),
)
"""Ways that a reader can follow, or that are no simple commands at all."""

HIDDEN = (
    *(
        "env -S '{c}'",
        "exec {c}",
        "eval '{c}'",
        "trap '{c}' EXIT",
        "coproc {c}",
        "builtin command {c}",
    ),
    *("echo '{c}' | sh", "printf '%s\\n' '{c}' | bash", "bash <<< '{c}'", "sh <<E\n{c}\nE"),
    *("echo '{c}' > s; sh s", "echo '{c}' > s; . ./s", "echo '{c}' > s; sh < s", "cat s.sh | sh"),
    *("echo '{c}' | xargs -I% sh -c %", "echo '{c}' | xargs -I{{}} sh -c {{}}", "v='{c}'; $v"),
    *("echo '{c}' | xargs -d '\\n' sh -c", "echo '{c}' | xargs -0 -I@ bash -c @", "$(echo {c})"),
    *("`echo {c}`", "bash -c 'compgen -C \"{c}\" x'", "bash -c 'test -v \"a[\\$({c})]\"'"),
    *("bash -c '[ -v \"a[\\$({c})]\" ]'", "bash -c 'printf -v \"a[\\$({c})]\" x'"),
    *("bash -c 'echo $((a[$({c})]))'", "bash -c 'mapfile -c 1 -C \"{c};\" a < sample'"),
    *("setarch x86_64 {c}", "linux64 {c}", "choom -n 0 -- {c}", "ionice {c}", "taskset 1 {c}"),
    *(
        "chrt -o 0 {c}",
        "prlimit {c}",
        "setpriv --no-new-privs {c}",
        "flock s.sh {c}",
        "fakeroot {c}",
    ),
    *(
        "sg root -c '{c}'",
        "script -qc '{c}' /dev/null",
        "busybox {c}",
        "unshare {c}",
        "watch -g {c}",
    ),
    *("/lib64/ld-linux-x86-64.so.2 /usr/bin/{c}", "/usr/bin/ld.so /usr/bin/{c}", "chroot / {c}"),
    *(
        "git -c alias.x='!{c}' x",
        "git -c core.pager='{c}' -p log",
        "git config alias.y '!{c}'; git y",
    ),
    *("git grep --no-index -O'{c};:' sample", "git bisect run {c}", "git rebase -x '{c}' HEAD"),
    *("git -c core.fsmonitor='{c};:' status", "GIT_PAGER='{c}' git -p log", "git --exec-path=. x"),
    *(
        "tar cf /dev/null sample --checkpoint=1 --checkpoint-action=exec='{c}'",
        "split --filter='{c}' sample",
    ),
    *("tar -cf t.tar sample; tar -xf t.tar --to-command='{c}'", "tar -I '{c}' -cf t sample"),
    *("tar --use-compress-program='{c}' -cf t sample", "tar cIf 'sh s.sh' t sample"),
    *("awk 'BEGIN{{system(\"{c}\")}}'", "awk 'BEGIN{{print 1 | \"{c}\"}}'"),
    *(
        "awk 'BEGIN{{\"{c}\" | getline x; print x}}'",
        "sed '1e {c}' sample",
        "sed 's/.*/{c}/e' sample",
    ),
    *("sed -n '1{{e {c}\n}}' sample", "sort --compress-program='{c}' -S 1b sample sample"),
    *(
        "make --eval='x:;{c}' x",
        "printf 'x:\\n\\t{c}\\n' > m; make -f m",
        "make",
        "make SHELL=./s.sh",
    ),
    *(
        "python3 -c 'import os; os.system(\"{c}\")'",
        "perl -e 'system(\"{c}\")'",
        "./s.sh",
        "sh s.sh",
    ),
    *(
        "echo 'import os; os.system(\"{c}\")' | python3",
        "bash ./s.sh",
        "ssh -o ProxyCommand='{c}' x",
    ),
    *("rsync -e '{c}' x:y .", "vim -es -c '!{c}' -c q", "man -P '{c}' ls", "less '+!{c}' sample"),
    *(
        "GIT_EXTERNAL_DIFF='{c};:' git diff --no-index s.sh sample",
        "GIT_PAGER='{c}' git log",
        "sed 's/[/]/;s/;e {c};s/x/' sample",
        'awk \'BEGIN{{print "}}" | "{c}"}}\'',
        'awk \'BEGIN{{ARGV[1]=".e" "nv"; ARGC=2}} 1\'',
        "PATH=.:$PATH {c}",
        "alias q='{c}'\nq",
        "hash -p /usr/bin/touch q; q marker",
    ),
    *(
        "find . -maxdepth 0 -exec sh -c '{c}' \\;",
        "find . -maxdepth 0 -execdir {c} \\;",
        "nsenter {c}",
    ),
)
"""Ways that hide the command from a reader, each of which would run it."""

_PACKS = ("receive-pack", "exec"), ("upload-pack", "exec")

ABBREVIATED = (
    *(
        f"git {verb} --{name[:length]}='{{c}};git-{packs[0]}' . {ref}"
        for packs, verbs, ref in (
            (_PACKS[0], ("push",), "HEAD:refs/heads/x"),
            (_PACKS[1], ("fetch", "pull", "ls-remote", "clone"), ""),
        )
        for verb, name in product(verbs, packs)
        for length in range(1, len(name) + 1)
    ),
    *(f"git rebase --{'exec'[:length]} '{{c}}' HEAD" for length in range(1, 5)),
    *(f"git rebase -{cluster}x '{{c}}' HEAD" for cluster in ("", "i", "q", "f")),
    *("git clone -qu '{c};git-upload-pack' . o", "git clone -nqc core.fsmonitor='{c};:' . o"),
    'git push "$(cat options)" . HEAD:refs/heads/x',
    "cat options | xargs -d '\\n' git push . HEAD:refs/heads/x",
)
"""Options of git that run a command, by every beginning of their names."""

CARRIERS = (
    *("mv {f} o; cat o/key.txt", "mv -T {f} o; cat o/key.txt", "mv -t sub {f}; cat sub/k*/key.txt"),
    *("git mv {f} o; cat o/key.txt", "ln -s {f} o; cat o/key.txt", "ln -sr {f} o; head o/key.txt"),
    *("ln -s . o; cat o/{f}/key.txt", "cp -r {f} o; cat o/key.txt", "diff -N {f} sub"),
    *("diff --new-file sub {f}", "diff -ur {f} sub -N", "git add -f {f}; git diff --cached"),
    *(
        "git add -Af; git diff --cached",
        "git add -f .; git diff --staged",
        "git stash -a; git show stash^3",
    ),
    *(
        "printf '{f}/key.txt\\0' | sort --files0-from=-",
        "printf '{f}/key.txt\\0' | sort --files0=-",
    ),
    *(
        "curl -s file://$PWD/{f}/key.txt",
        "curl -s file://@/{f}/%6bey.txt",
        "curl -s 'file://@/{f}/[k-k]ey.txt'",
    ),
    *("curl -s 'file://@/{f}/{{key,x}}.txt'", "curl --proto-default file -s @/{f}/%6bey.txt"),
    *("tar c {f} | tar xO", "git diff --no-index /dev/null {f}/key.txt", "rg . {f}"),
)
"""Ways to read a file by the folder that it is in, or by a list of names; `@` is the workspace."""

FOLDERS = ("keys", "./keys", "keys/", "sub/../keys", '"keys"', "k*s", "up/keys")

READERS = (
    *(
        "cat {p}",
        "head -5 {p}",
        "grep '' {p}",
        "sed -n p {p}",
        "awk 1 {p}",
        "base64 -w0 {p} | base64 -d",
    ),
    *("sort {p}", "cat < {p}", "cp {p} /dev/stdout", "tar cf - {p}", "dd if={p}", "tee < {p}"),
    *("cp {p} out; cat out", "ln {p} out; cat out", "mv {p} out; cat out", "diff {p} sample"),
)

SPELLINGS = (
    *(
        ".env",
        "./.env",
        "sub/../.env",
        "$PWD/.env",
        '"$PWD/.env"',
        ".e*",
        ".en?",
        ".[e]nv",
        ".{{env,x}}",
    ),
    *(
        "{{.env,sample}}",
        "$(echo .env)",
        "`echo .env`",
        "link",
        "hard",
        "up/.env",
        "/proc/self/cwd/.env",
    ),
    *("~+/.env", "*/.env", "sub/.env", ".ENV*", "$(ls -A)", "/proc/$$/cwd/.env"),
)

SWEEPS = (
    *(
        "grep -r '' .",
        "grep -rh '' sub",
        "rg --no-ignore -uuu . .",
        "git grep --no-index kept",
        "cat .* *",
    ),
    *(
        "find . -type f -exec cat {} +",
        "find . -name '.e*' | xargs cat",
        "tar c . | tar xO",
        "cp -r . o; cat o/.e*",
    ),
    *(
        "cd sub && cat .env",
        "cd sub; head .env",
        "(cd sub; cat .env)",
        "pushd sub && cat .env",
        "ls -A | xargs cat",
    ),
    *(
        "diff -r . sub",
        "git diff --no-index /dev/null .env",
        "git -C sub diff --no-index /dev/null .env",
    ),
    *("echo x > locked.txt", "echo x > lock", "echo x >> sub/../locked.txt", "tee lock < sample"),
    *(
        "cd sub; echo x > ../locked.txt",
        "cp sample lock",
        "cp sample l*d.txt",
        "sed -i s/a/b/ locked.txt",
    ),
    *(
        "rm -rf locked.txt; cp sample locked.txt",
        "mv sample locked.txt",
        "cp sample $(echo locked.txt)",
    ),
    *(
        "find . -name 'l*' -delete",
        "ln -sf sample locked.txt",
        "dd if=sample of=lock",
        "touch marker",
    ),
    *(
        "cp /usr/bin/touch t; ./t marker",
        "ln -s /usr/bin/touch t; ./t marker",
        "/usr/bin/touch marker",
    ),
)

HOOK = "cp s.sh .git/hooks/post-checkout; git checkout -qb other"
SETTING = "cp settings .git/config; git status"

LIMITS = {
    HOOK: "git runs the hooks of the repository",
    SETTING: "git runs what the settings of the repository name",
    "git log -p": "a committed file is in the objects of git as well",
    "git show HEAD": "a committed file is in the objects of git as well",
    "pytest -q": "a test runner runs the code of the project",
}
"""Lines that do reach what is forbidden, and why nothing can be done about it here."""


def build_corpus() -> list[str]:
    """Every line once."""
    ways = [way.format(c=target) for way, target in product((*ALWAYS, *HIDDEN), TARGETS)]
    reads = [reader.format(p=spelling.format()) for reader, spelling in product(READERS, SPELLINGS)]
    short = [way.format(c=TARGETS[0]) for way in ABBREVIATED]
    return list(dict.fromkeys((*ways, *short, *reads, *SWEEPS, *build_carriers(), *LIMITS)))


def build_carriers() -> list[str]:
    """Every way of reading a folder that a rule is about, by every spelling."""
    return [way.format(f=folder) for way, folder in product(CARRIERS, FOLDERS)]


NAMED = tuple(
    way
    for way in HIDDEN
    if way.split()[0]
    in {
        "env",
        "setarch",
        "linux64",
        "choom",
        "ionice",
        "taskset",
        "chrt",
        "prlimit",
        "setpriv",
        "flock",
        "fakeroot",
        "sg",
        "script",
        "busybox",
        "unshare",
        "watch",
        "chroot",
        "nsenter",
        "git",
        "tar",
        "split",
        "awk",
        "sed",
        "sort",
        "ssh",
        "rsync",
        "vim",
        "man",
        "less",
        "find",
        "/usr/bin/ld.so",
        "/lib64/ld-linux-x86-64.so.2",
    }
)
"""Ways whose program does something else by its name, so that a rule may well allow it."""


class Ground:
    """A workspace that is made anew before each line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lay_out(self) -> None:
        for entry in self.folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        for name in ("sub", "keys"):
            (self.folder / name).mkdir()
        (self.folder / "keys/key.txt").write_text(f"{SECRET}\n")
        (self.folder / "options").write_text("--receive-pack=touch marker;git-receive-pack")
        for name in (".env", "sub/.env"):
            (self.folder / name).write_text(f"{SECRET}\n")
        (self.folder / "sample").write_text("sample\nline\n")
        (self.folder / "locked.txt").write_text("locked\n")
        (self.folder / "link").symlink_to(".env")
        (self.folder / "lock").symlink_to("locked.txt")
        (self.folder / "up").symlink_to(".")
        os.link(self.folder / ".env", self.folder / "hard")
        script = "touch marker\ncat .env\ncp sample locked.txt\n"
        (self.folder / "s.sh").write_text(f"#!/bin/sh\n{script}")
        (self.folder / "s.sh").chmod(0o755)
        (self.folder / "settings").write_text("[core]\n\tfsmonitor = touch marker;false\n")
        (self.folder / "Makefile").write_text("all:\n\ttouch marker\n\tcat .env\n")
        (self.folder / "test_it.py").write_text(
            "import subprocess\n\ndef test_it():\n    subprocess.run(['touch', 'marker'])\n"
        )

    def commit(self) -> None:
        """A repository with everything in it, secrets too."""
        for words in (
            ("init", "-q"),
            ("add", "-Af"),
            ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"),
        ):
            subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True)

    def was_reached(self, output: str) -> bool:
        """Whether a line did what the rules deny."""
        locked = self.folder / "locked.txt"
        return (
            (self.folder / "marker").exists()
            or SECRET in output
            or not locked.is_file()
            or locked.is_symlink()
            or locked.read_text() != "locked\n"
        )
