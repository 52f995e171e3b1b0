"""What is shown is what runs: hidden characters are seen, and the hash is of all that is shown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.runtime.policy import PolicyRequest, hash_request, make_visible, show_request
from tests.runtime.policy_cases import WORKSPACE, run, use

MARK = re.compile(r"⟦U\+([0-9A-F]{4,6})(?: ×([0-9]+))?⟧")

HOSTILE: dict[str, str] = {
    # direction
    **{f"bidi {code:04X}": f"ls {chr(code)}x" for code in (*range(0x202A, 0x202F),)},
    **{f"isolate {code:04X}": f"ls {chr(code)}x" for code in range(0x2066, 0x206A)},
    **{f"direction mark {code:04X}": f"ls{chr(code)}x" for code in (0x200E, 0x200F, 0x061C)},
    # escapes and other controls
    "ansi colour": "ls \x1b[8m; rm x\x1b[0m",
    "ansi cursor": "rm x\x1b[2K\x1b[1Gls",
    "ansi title": "ls\x1b]0;x\x07",
    "ansi link": "ls \x1b]8;;https://example.org\x1b\\x",
    "one-byte escape": "ls \x9b8m",
    "device control": "ls \x90x\x9c",
    "backspace": "rm x\b\b\b\bls",
    "carriage return": "rm x\rls  ",
    "delete": "ls\x7f",
    "null": "ls\x00rm",
    "bell": "ls\x07",
    "vertical tab": "ls\x0brm",
    "form feed": "ls\x0crm",
    "next line": "ls\x85rm",
    "shift out": "ls\x0erm",
    # nothing to see
    **{
        f"zero width {code:04X}": f"l{chr(code)}s"
        for code in (0x200B, 0x200C, 0x200D, 0x2060, 0x2061, 0x2063, 0xFEFF, 0x00AD, 0x180E, 0x034F)
    },
    **{f"filler {code:04X}": f"l{chr(code)}s" for code in (0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800)},
    "variation selector": "ls\ufe0f",
    "variation selector supplement": "ls\U000e0100",
    "tag characters": "ls\U000e0072\U000e006d",
    "private use": "ls\ue000",
    "unassigned": "ls\U0003fffe",
    "lone surrogate": "ls\ud800",
    "interlinear": "ls\ufff9x\ufffb",
    # spaces that are none, and lines that are none
    **{
        f"space {code:04X}": f"ls{chr(code)}x"
        for code in (0x00A0, 0x1680, 0x2000, 0x2003, 0x2009, 0x200A, 0x202F, 0x205F, 0x3000)
    },
    "line separator": "ls\u2028rm x",
    "paragraph separator": "ls\u2029rm x",
    # letters and signs of others
    "cyrillic letter": "gіt status",  # noqa: RUF001
    "cyrillic word": "сору x",  # noqa: RUF001
    "greek letter": "lsο",  # noqa: RUF001
    "armenian letter": "lօg",  # noqa: RUF001
    "cherokee letter": "ᏚET",  # noqa: RUF001
    "fullwidth letter": "ｌs",  # noqa: RUF001
    "fullwidth semicolon": "ls；rm x",  # noqa: RUF001
    "greek question mark": "ls\u037erm x",
    "mathematical letter": "𝐥s",  # noqa: RUF001
    "roman numeral": "ⅼs",  # noqa: RUF001
    "dotless i": "gıt",  # noqa: RUF001
    "script g": "ɡit",  # noqa: RUF001
    "division slash": "rm ∕etc",  # noqa: RUF001
    "fraction slash": "rm ⁄etc",  # noqa: RUF001
    "hyphen": "rm ‐rf",  # noqa: RUF001
    "dash": "rm –rf",
    "minus": "rm −rf",
    "quotes": "echo ‘$(rm x)’",  # noqa: RUF001
    "double quotes": "echo “$(rm x)”",
    "prime": "echo ′x′",  # noqa: RUF001
    "divides": "ls ∣ rm",  # noqa: RUF001
    "one dot leader": "cat ․env",  # noqa: RUF001
    "many marks": "ls" + "\u0301" * 20,
    # off the screen
    "many blanks": "ls" + " " * 500 + "; rm x",
    "many lines": "ls" + "\n" * 500 + "rm x",
    "many blank lines": "ls" + " \n" * 500 + "rm x",
    "many tabs": "ls" + "\t" * 500 + "; rm x",
    # the marks themselves
    "a mark": "ls ⟦U+0020⟧",
    "a long mark": "ls ⟦U+0020 ×64⟧",
    "a tab's mark": "ls ⇥x",
}


def read_back(text: str) -> str:
    """What was shown, turned back into what it stands for."""
    plain = text.replace("⇥", "\t")
    return MARK.sub(lambda mark: chr(int(mark[1], 16)) * int(mark[2] or 1), plain)


def test_the_corpus_is_large_enough():
    assert len(HOSTILE) >= 60


@pytest.mark.requirement("runtime.policy.shown")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_character_is_seen_and_can_be_read_back(name: str):
    text = make_visible(HOSTILE[name])
    assert MARK.search(text) or "⇥" in text
    assert text.isprintable()
    assert read_back(text) == HOSTILE[name]


@pytest.mark.requirement("runtime.policy.shown")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_command_path_or_argument_is_seen_in_what_a_person_is_shown(name: str):
    hostile = HOSTILE[name]
    requests = [
        run(hostile),
        run(("sh", hostile)),
        use("Edit", hostile),
        use(hostile),
        use("deploy", args={"x": hostile}),
        use("deploy", args={hostile: 1}),
        PolicyRequest(tool="Read", workspace=WORKSPACE, cwd=hostile),
        PolicyRequest(tool="WebFetch", workspace=WORKSPACE, url=hostile),
    ]
    plain = "ls"
    for request in requests:
        text = show_request(request)
        assert all(line.isprintable() for line in text.split("\n"))
        assert hostile not in text or hostile == plain
    assert len({hash_request(request) for request in requests}) == len(requests)


@pytest.mark.requirement("runtime.policy.shown")
@pytest.mark.parametrize(
    "text",
    [
        *(
            "git status -s",
            "echo 'Grüße, straße, façade'",
            "echo привет мир",
            "echo 你好",
            "echo مرحبا",
        ),
        *("echo γειά σου κόσμε", "a" + " " * 40 + "b", "echo naïve café", "echo 🙂", "echo שלום"),  # noqa: RUF001
    ],
)
def test_honest_text_is_shown_as_it_is(text: str):
    assert make_visible(text) == text


@pytest.mark.requirement("runtime.policy.shown")
def test_everything_that_a_request_is_made_of_is_shown():
    request = PolicyRequest(
        tool="Edit",
        workspace="/w",
        cwd="/w/src",
        paths=("a.py", "b.py"),
        diff="-a – b\n+\tc",
        args={"b": [1, 2.5, None, True], "a": "ä"},
        effect="edit",
    )
    assert show_request(request).split("\n") == [
        "tool: Edit",
        "effect: edit",
        "workspace: /w",
        "cwd: /w/src",
        "path: a.py",
        "path: b.py",
        "diff:",
        "| -a – b",
        "| +⇥c",
        'args: {"a":"ä","b":[1,2.5,null,true]}',
    ]
    assert show_request(run("ls\ncwd: /safe")).split("\n")[2:] == [
        "command:",
        "| ls",
        "| cwd: /safe",
    ]
    assert show_request(run(("ls", "-l"))).split("\n")[2:] == ['argv: ["ls","-l"]']


@pytest.mark.requirement("runtime.policy.args-hash")
def test_the_hash_is_stable_and_does_not_know_the_order_of_keys():
    first = use("deploy", args={"a": 1, "b": {"c": 2, "d": 3}})
    second = use("deploy", args={"b": {"d": 3, "c": 2}, "a": 1})
    assert hash_request(first) == hash_request(second)
    assert hash_request(run("ls")) == (
        "sha256:b9bc8e1b7e29a20defc3f9b47dead1339074c56927815a1c99f6022acb23e66b"
    )


texts = st.text(st.characters(), max_size=12) | st.sampled_from(sorted(HOSTILE.values()))
requests = st.builds(
    PolicyRequest,
    tool=texts,
    workspace=texts,
    cwd=st.none() | texts,
    command=st.none() | texts | st.lists(texts, max_size=3).map(tuple),
    paths=st.lists(texts, max_size=2).map(tuple),
    url=st.none() | texts,
    diff=st.none() | texts,
    args=st.dictionaries(texts, texts | st.integers() | st.none(), max_size=2),
    effect=st.sampled_from([None, "read", "run"]),
)


@pytest.mark.requirement("runtime.policy.args-hash")
@given(requests, requests)
def test_two_requests_are_never_shown_alike(first: PolicyRequest, second: PolicyRequest):
    assert (first == second) == (show_request(first) == show_request(second))
    assert (first == second) == (hash_request(first) == hash_request(second))


@pytest.mark.requirement("runtime.policy.args-hash")
@given(requests, st.sampled_from(["tool", "workspace", "cwd", "url", "diff"]), texts)
def test_the_hash_changes_when_anything_shown_changes(
    request_: PolicyRequest, field: str, value: str
):
    import msgspec

    changed = msgspec.structs.replace(request_, **{field: value})
    same = getattr(request_, field) == value
    assert (hash_request(changed) == hash_request(request_)) == same


@pytest.mark.requirement("runtime.policy.shown")
@given(st.text(st.characters(), max_size=80), st.booleans())
def test_what_is_shown_can_always_be_read_back(text: str, strict: bool):
    made = make_visible(text, strict=strict)
    assert made.isprintable()
    assert read_back(made) == text
