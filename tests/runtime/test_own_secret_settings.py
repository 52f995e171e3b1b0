"""Own patterns and never-stored values: where they are set, and what is read of them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from factwire.facts import redact_text
from factwire.facts.own_secrets import MOST_VALUES, OWN_SECRETS, OwnPattern
from factwire.journal import open_journal
from factwire.runtime.configuration import (
    ConfigurationError,
    DeclaredRedaction,
    ProjectTrust,
    declare_redaction,
    load_configuration,
    load_redaction,
    read_project_file,
)
from factwire.runtime.recording import Recorder

pytestmark = pytest.mark.requirement("redaction.own-settings")


@pytest.fixture(autouse=True)
def no_own_secrets() -> Iterator[None]:
    yield
    OWN_SECRETS.clear()


class Setup:
    """A home with settings, a project with settings of its own, and variables."""

    def __init__(self, folder: Path) -> None:
        self.user_file = folder / "home" / ".config" / "factwire" / "config.toml"
        self.project_file = folder / "project" / "factwire.toml"
        self.user_file.parent.mkdir(parents=True)
        self.project_file.parent.mkdir()
        self.variables = {"HOME": str(folder / "home")}

    def trust(self) -> None:
        ProjectTrust(self.variables).add(read_project_file(self.project_file))

    def declare(self, **variables: str) -> DeclaredRedaction:
        environment = {**self.variables, **variables}
        return load_redaction(self.project_file.parent, environment=environment)


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def test_patterns_and_values_of_all_sources_add_up_once_the_project_is_trusted(setup: Setup):
    setup.user_file.write_text(
        "[redaction]\nnever_store = ['USER_KEY', '*_TOKEN']\n"
        "patterns = { mine = 'user-[0-9]{6}' }\n"
    )
    setup.project_file.write_text(
        "[redaction]\nnever_store = ['conf/prod.env']\npatterns = { mine = 'team-[0-9]{6}' }\n"
    )
    env_file = setup.project_file.parent / "conf" / "prod.env"
    env_file.parent.mkdir()
    env_file.write_text("DB=from-the-project-file\n")
    variables = {"USER_KEY": "value of the user", "A_TOKEN": "value of a token", "OTHER": "x" * 20}
    text = "user-123456 team-123456 from-the-project-file, value of the user, value of a token"

    assert setup.declare(**variables) == DeclaredRedaction(patterns=1, values=2)
    hidden = "[redacted] team-123456 from-the-project-file, [redacted], [redacted]"
    assert redact_text(text)[0] == hidden

    setup.trust()
    assert setup.declare(**variables) == DeclaredRedaction(patterns=2, values=3)
    assert redact_text(text)[0] == "[redacted] [redacted] [redacted], [redacted], [redacted]"
    assert redact_text("x" * 20)[0] == "x" * 20


def test_variables_set_them_too(setup: Setup):
    found = setup.declare(
        FACTWIRE_REDACTION_PATTERNS='{"mine": "case-[0-9]{6}"}',
        FACTWIRE_REDACTION_NEVER_STORE='["DEPLOY_*"]',
        DEPLOY_PASS="the deploy pass",
    )
    assert found == DeclaredRedaction(patterns=1, values=1)
    assert redact_text("case-123456 the deploy pass")[0] == "[redacted] [redacted]"


ENV_FILE = r"""# A comment
PLAIN=plain-value-1
export EXPORTED = exported-value-2   # a comment behind
SINGLE='single value # 3'
DOUBLE="double \"value\" 4\nnext line of it"
YAML_LIKE: yaml-like-value-5
EMPTY=
SHORT=abc
WORD=password
MULTI="first line of many
second line of many"
BACK=`back quoted 6`
"""


def test_a_file_of_assignments_is_read_as_shells_and_libraries_do(setup: Setup):
    setup.user_file.write_text("[redaction]\nnever_store = ['./.env', 'missing.env']\n")
    folder = setup.user_file.parent
    (folder / ".env").write_text(ENV_FILE)
    found = setup.declare()
    assert (found.patterns, found.ignored) == (0, ("SHORT", "WORD"))
    assert found.missing == (str(folder / "missing.env"),)
    for text in (
        "plain-value-1", "exported-value-2", "single value # 3", "back quoted 6",
        'double "value" 4\nnext line of it', "yaml-like-value-5", "second line of many",
    ):  # fmt: skip
        assert redact_text(f"<{text}>")[0] == "<[redacted]>", text
    for text in ("abc", "password", "a comment behind", "PLAIN", "EXPORTED"):
        assert redact_text(text)[0] == text


@pytest.mark.parametrize("problem", ["folder", "binary", "big", "many"])
def test_a_file_that_cannot_be_used_is_refused_without_showing_it(setup: Setup, problem: str):
    setup.user_file.write_text("[redaction]\nnever_store = ['./.env']\n")
    path = setup.user_file.parent / ".env"
    if problem == "folder":
        path.mkdir()
    elif problem == "binary":
        path.write_bytes(b"A=\xff\xfe secret-of-bytes")
    elif problem == "big":
        path.write_text("A=secret-of-many\n" * 200_000)
    else:
        path.write_text("".join(f"A{n}=secret-number-{n}\n" for n in range(MOST_VALUES + 1)))
    with pytest.raises(ConfigurationError) as raised:
        setup.declare()
    assert raised.value.code == "configuration_invalid"
    assert "secret-" not in str(raised.value)


def test_other_mistakes_in_a_configuration_are_not_those_of_redaction(setup: Setup):
    setup.user_file.write_text("nonsense = 1\n[redaction]\npatterns = { a = 'abcd[0-9]{4}' }\n")
    assert setup.declare() == DeclaredRedaction(patterns=1)
    setup.user_file.write_text("nonsense = 1\n[redaction]\npatterns = { a = 'abcd[0-9]+' }\n")
    with pytest.raises(ConfigurationError) as raised:
        setup.declare()
    [problem] = raised.value.problems
    assert (problem.code, problem.key) == ("wrong_value", "redaction.patterns")
    assert "upper bound" in str(problem)


def test_a_configuration_holds_names_and_no_values(setup: Setup):
    setup.user_file.write_text("[redaction]\nnever_store = ['A_KEY', './.env']\n")
    (setup.user_file.parent / ".env").write_text("B=value-of-the-file\n")
    environment = {**setup.variables, "A_KEY": "value-of-the-variable"}
    resolved = load_configuration(setup.project_file.parent, environment=environment)
    declare_redaction(resolved.configuration.redaction, environment)
    assert "value-of" not in repr(resolved)
    assert OWN_SECRETS.value_count == 2
    assert resolved.configuration.redaction.never_store[0] == "A_KEY"
    OWN_SECRETS.declare([OwnPattern("x", "abcdef")])
    assert OWN_SECRETS.pattern_count == 1


def test_a_recorder_hides_what_the_settings_name(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    setup.user_file.write_text("[redaction]\nnever_store = ['A_KEY']\n")
    monkeypatch.chdir(setup.project_file.parent)
    monkeypatch.setenv("HOME", setup.variables["HOME"])
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("A_KEY", "open sesame please")
    url = f"sqlite:{tmp_path}/journal.db"

    async def record() -> bytes:
        async with Recorder(url, thread_id="t") as recorder:
            async with recorder.turn("say open sesame please") as turn:
                for piece in ("It is open", " sesa", "me please", " indeed"):
                    turn.text(piece)
            async with recorder.trial("open sesame please") as trial:
                await trial.trajectory("it was open sesame please")
        async with open_journal(url) as journal:
            return b"".join([record.data async for record in journal.read()])

    stored = asyncio.run(record())
    assert b"[redacted]" in stored
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("blobs" in str(path) for path in kept)
    for content in (stored, *(path.read_bytes() for path in kept)):
        assert b"sesame" not in content
