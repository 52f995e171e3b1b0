"""Configuration: who wins, where each value came from, and what is wrong with the rest."""

import os
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factwire.runtime.configuration import (
    PRECEDENCE,
    SETTINGS,
    AgentSettings,
    Configuration,
    ConfigurationError,
    Limits,
    Origin,
    PolicySettings,
    ProjectFile,
    ProjectTrust,
    ResolvedConfiguration,
    SandboxSettings,
    SettingRow,
    SourceKind,
    UntrustedProject,
    list_setting_rows,
    load_configuration,
    read_project_file,
)
from factwire.runtime.policy import Policy

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


class Machine:
    """A home, a project with a folder in it, and variables."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.place = self.project / "src"
        self.user_file = self.home / ".config" / "factwire" / "config.toml"
        self.project_file = self.project / "factwire.toml"
        self.place.mkdir(parents=True)
        self.user_file.parent.mkdir(parents=True)
        self.variables = {"HOME": str(self.home)}

    def load(self, *flags: tuple[str, str], **variables: str) -> ResolvedConfiguration:
        environment = {**self.variables, **variables}
        for file in (self.project_file, self.place / "factwire.toml"):
            if file.is_file():
                ProjectTrust(environment).add(read_project_file(file))
        return load_configuration(self.place, flags=flags, environment=environment)

    def problems(self, *flags: tuple[str, str], **variables: str) -> list[str]:
        with pytest.raises(ConfigurationError) as raised:
            self.load(*flags, **variables)
        assert raised.value.code == "configuration_invalid"
        return [str(problem) for problem in raised.value.problems]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


class Sample(NamedTuple):
    """A setting in TOML and as text, three ways, and what each of them means."""

    toml: tuple[str, str]
    text: tuple[str, str]
    values: tuple[Any, Any, Any, Any]


SAMPLES: dict[str, Sample] = {
    "journal": Sample(
        ('"nats://a"', '"nats://b"'),
        ("memory:", "nats://d"),
        ("nats://a", "nats://b", "memory:", "nats://d"),
    ),
    "data": Sample(('"/a"', '"/b"'), ("/c", "/d"), ("/a", "/b", "/c", "/d")),
    "workspaces": Sample(
        ('["/a"]', '["/b", "/b2"]'),
        (os.pathsep.join(("/c", "/c2")), "/d"),
        (("/a",), ("/b", "/b2"), ("/c", "/c2"), ("/d",)),
    ),
    "worktree": Sample(("true", "false"), ("yes", "0"), (True, False, True, False)),
    "agent": Sample(('"a"', '"b"'), ("c", "d"), ("a", "b", "c", "d")),
    "user": Sample(('"Ada"', '"Bo"'), ("C d", "E"), ("Ada", "Bo", "C d", "E")),
    "policy.mode": Sample(
        ('"plan"', '"acceptEdits"'),
        ("dontAsk", "plan"),
        ("plan", "acceptEdits", "dontAsk", "plan"),
    ),
    "policy.allow": Sample(
        ('["Read"]', '["Edit"]'),
        ('["Bash(a, b)", "x"]', "Bash(git *)"),
        (("Read",), ("Edit",), ("Bash(a, b)", "x"), ("Bash(git *)",)),
    ),
    "sandbox.mode": Sample(
        ('"off"', '"require"'), ("prefer", "off"), ("off", "require", "prefer", "off")
    ),
    "sandbox.network": Sample(("true", "false"), ("yes", "0"), (True, False, True, False)),
    "limits.turn_seconds": Sample(("1", "2.5"), ("3", "4.5"), (1.0, 2.5, 3.0, 4.5)),
    "limits.output_bytes": Sample(("1", "2"), ("3", "4"), (1, 2, 3, 4)),
    "limits.approval_seconds": Sample(("1", "2"), ("3", "4"), (1.0, 2.0, 3.0, 4.0)),
    "limits.concurrent_runs": Sample(("1", "2"), ("3", "4"), (1, 2, 3, 4)),
    "retry.attempts": Sample(("1", "2"), ("3", "4"), (1, 2, 3, 4)),
    "retry.delay_seconds": Sample(("1", "2.5"), ("3", "4.5"), (1.0, 2.5, 3.0, 4.5)),
    "retry.factor": Sample(("1", "2.5"), ("3", "4.5"), (1.0, 2.5, 3.0, 4.5)),
    "retry.categories": Sample(
        ('["a"]', '["b", "c"]'), ("d,e", "f"), (("a",), ("b", "c"), ("d", "e"), ("f",))
    ),
    "retry.repeat_effects": Sample(("true", "false"), ("yes", "0"), (True, False, True, False)),
    "retention.keep_days": Sample(("1", "2.5"), ("3", "4.5"), (1.0, 2.5, 3.0, 4.5)),
    "retention.keep_facts": Sample(("1", "2"), ("3", "4"), (1, 2, 3, 4)),
    "retention.compact": Sample(("true", "false"), ("yes", "0"), (True, False, True, False)),
    "retention.every_seconds": Sample(("1", "2.5"), ("3", "4.5"), (1.0, 2.5, 3.0, 4.5)),
    "hub.host": Sample(('"::1"', '"b"'), ("c", "d"), ("::1", "b", "c", "d")),
    "hub.port": Sample(("0", "2"), ("3", "65535"), (0, 2, 3, 65535)),
    "hub.url": Sample(
        ('"https://a"', '"https://b"'),
        ("https://c", "http://d:1"),
        ("https://a", "https://b", "https://c", "http://d:1"),
    ),
    "hub.database": Sample(
        ('"sqlite:/a"', '"postgres://b/x"'),
        ("sqlite:/c", "postgresql://d/x"),
        ("sqlite:/a", "postgres://b/x", "sqlite:/c", "postgresql://d/x"),
    ),
    **{
        f"hub.{name}": Sample(
            ('["a"]', '["b", "c"]'), ('["d", "e"]', "f"), (("a",), ("b", "c"), ("d", "e"), ("f",))
        )
        for name in ("hosts", "origins", "proxies", "push_hosts", "webhook_hosts")
    },
    **{
        f"hub.{name}": Sample(("1", "2"), ("3", "4"), (1, 2, 3, 4))
        for name in ("runners", "runners_per_person", "approvals_required")
    },
    "hub.runner_idle_seconds": Sample(("1", "2.5"), ("3", "4.5"), (1.0, 2.5, 3.0, 4.5)),
    **{
        f"hub.{name}": Sample(("1", "2.5"), ("3", "4.5"), (1.0, 2.5, 3.0, 4.5))
        for name in ("event_days", "record_days")
    },
    "hub.token_in_url": Sample(("true", "false"), ("yes", "0"), (True, False, True, False)),
    "hub.runner_command": Sample(
        ('["a"]', '["b", "c"]'), ('["d", "e"]', '["f"]'), (("a",), ("b", "c"), ("d", "e"), ("f",))
    ),
    "hub.runner_env": Sample(
        ('["A"]', '["B", "C"]'), ('["D", "E"]', '["F"]'), (("A",), ("B", "C"), ("D", "E"), ("F",))
    ),
}

GATHERED = ("policy.ask", "policy.deny")
TABLES = ("hub.mail",)
"""A table as a whole; the tests of a Hub's notifications read it."""

OWN_SECRETS = ("redaction.patterns", "redaction.never_store")
"""These add up, too; `test_own_secret_settings` has them."""

SOURCES: tuple[SourceKind, ...] = ("user", "project", "environment", "flag")


def value_of(resolved: ResolvedConfiguration, key: str) -> Any:
    value: Any = resolved.configuration
    for name in key.split("."):
        value = getattr(value, name)
    return value


def give(machine: Machine, key: str, sources: tuple[SourceKind, ...]) -> ResolvedConfiguration:
    """The configuration when these sources give the sample of a key."""
    sample = SAMPLES[key]
    if "user" in sources:
        machine.user_file.write_text(f"{key} = {sample.toml[0]}\n")
    if "project" in sources:
        machine.project_file.write_text(f"{key} = {sample.toml[1]}\n")
    variables = {SETTINGS[key].variable: sample.text[0]} if "environment" in sources else {}
    flags = [(key, sample.text[1])] if "flag" in sources else []
    return machine.load(*flags, **variables)


def test_every_setting_has_a_sample():
    assert {*SAMPLES, *GATHERED, *TABLES, *OWN_SECRETS} == set(SETTINGS)


@pytest.mark.requirement("runtime.configuration.precedence")
@pytest.mark.parametrize("key", SAMPLES)
@pytest.mark.parametrize("sources", [*combinations(SOURCES, 1), *combinations(SOURCES, 2), SOURCES])
def test_the_strongest_source_wins_and_is_named(
    machine: Machine, key: str, sources: tuple[SourceKind, ...]
):
    resolved = give(machine, key, sources)
    winner = sources[-1]
    assert value_of(resolved, key) == SAMPLES[key].values[SOURCES.index(winner)]
    places = {
        "user": f"{machine.user_file}:1",
        "project": f"{machine.project_file}:1",
        "environment": SETTINGS[key].variable,
        "flag": f"--set {key}",
    }
    assert resolved.origins[key] == Origin(winner, places[winner])


@pytest.mark.requirement("runtime.configuration.precedence")
def test_without_any_source_there_are_defaults(machine: Machine):
    state = machine.home / ".local" / "state" / "factwire"
    resolved = machine.load()
    assert resolved.configuration == Configuration(
        journal=f"sqlite:{state}/journal.db",
        data=str(state),
        policy=PolicySettings(),
        sandbox=SandboxSettings(mode="prefer", network=False),
        limits=Limits(turn_seconds=1800.0, output_bytes=1024 * 1024, concurrent_runs=5),
    )
    assert set(resolved.origins.values()) == {Origin("default")}
    assert resolved.configuration.workspaces == ()
    assert PRECEDENCE == ("flag", "environment", "project", "user", "default")


@pytest.mark.requirement("runtime.configuration.precedence")
def test_the_journal_lies_in_the_data_folder(machine: Machine):
    resolved = machine.load(("data", "state"))
    assert resolved.configuration.journal == f"sqlite:{machine.place}/state/journal.db"
    assert resolved.origins["journal"] == Origin("default")


@pytest.mark.requirement("runtime.configuration.gathered")
@pytest.mark.parametrize("key", GATHERED)
def test_what_asks_or_denies_adds_up_over_all_sources(machine: Machine, key: str):
    machine.user_file.write_text(f'{key} = ["Read(.env)", "Bash(rm *)"]\n')
    machine.project_file.write_text(f"{key} = []\n")
    variables = {SETTINGS[key].variable: "Bash(rm *)"}
    resolved = machine.load((key, "Edit"), **variables)
    assert value_of(resolved, key) == ("Edit", "Bash(rm *)", "Read(.env)")
    assert resolved.origins[key] == Origin(
        "flag",
        f"--set {key}, {SETTINGS[key].variable}, {machine.project_file}:1, {machine.user_file}:1",
    )


@pytest.mark.requirement("runtime.configuration.agents")
def test_an_agent_is_put_together_field_by_field(machine: Machine):
    machine.user_file.write_text(
        '[agents.main]\nkind = "claude-code"\nmodel = "a"\napi_key_env = "MY_KEY"\n'
        '[agents.own]\nkind = "my.module:Agent"\nbase_url = "http://localhost:1/v1"\n'
        "[agents.own.options]\ndepth = 3\nnested = { a = [1, 2] }\n"
    )
    machine.project_file.write_text('[agents.main]\nmodel = "b"\n')
    resolved = machine.load(("agents.own.model", "c"))
    assert resolved.configuration.agents == {
        "main": AgentSettings(kind="claude-code", model="b", api_key_env="MY_KEY"),
        "own": AgentSettings(
            kind="my.module:Agent",
            model="c",
            base_url="http://localhost:1/v1",
            options={"depth": 3, "nested": {"a": [1, 2]}},
        ),
    }
    assert resolved.origins["agents.main.kind"] == Origin("user", f"{machine.user_file}:2")
    assert resolved.origins["agents.main.model"] == Origin("project", f"{machine.project_file}:2")
    assert resolved.origins["agents.own.model"] == Origin("flag", "--set agents.own.model")
    assert resolved.origins["agents.own.options"] == Origin("user", f"{machine.user_file}:8")


@pytest.mark.requirement("runtime.configuration.files")
def test_the_nearest_project_file_counts_and_paths_start_at_it(machine: Machine):
    machine.project_file.write_text(
        'workspaces = [".", "../other", "~/w", "/x"]\njournal = "sqlite:j.db?mode=ro"\n'
    )
    configuration = machine.load().configuration
    assert configuration.workspaces == (
        str(machine.project),
        str(machine.project.parent / "other"),
        f"{machine.home}/w",
        "/x",
    )
    assert configuration.journal == f"sqlite:{machine.project}/j.db?mode=ro"
    (machine.place / "factwire.toml").write_text('agent = "near"\n')
    assert machine.load().configuration.agent == "near"
    assert machine.load().configuration.workspaces == ()


@pytest.mark.requirement("runtime.configuration.files")
def test_the_folders_of_the_xdg_specification_count(machine: Machine, tmp_path: Path):
    config = tmp_path / "config" / "factwire"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('agent = "x"\n')
    state = str(tmp_path / "state")
    resolved = machine.load(XDG_CONFIG_HOME=str(config.parent), XDG_STATE_HOME=state)
    assert (resolved.configuration.agent, resolved.configuration.data) == ("x", f"{state}/factwire")
    ignored = machine.load(XDG_CONFIG_HOME="config", XDG_STATE_HOME="state").configuration
    assert (ignored.agent, ignored.data) == (None, f"{machine.home}/.local/state/factwire")


def nobody(file: Path) -> bool:
    del file
    return False


@pytest.mark.requirement("runtime.configuration.files")
def test_a_file_that_somebody_else_left_above_the_project_does_not_count(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    machine.project_file.write_text('agent = "planted"\n')
    assert machine.load().configuration.agent == "planted"
    mine = machine.project_file.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    expected = "planted" if mine == 0 else None
    assert machine.load().configuration.agent == expected
    monkeypatch.setattr("factwire.runtime.configuration.resolution._is_own_file", nobody)
    assert machine.load().configuration.agent is None


@pytest.mark.requirement("runtime.configuration.precedence")
def test_rules_become_a_policy(machine: Machine):
    configuration = machine.load(
        ("policy.mode", "plan"), ("policy.deny", "Bash(rm *)")
    ).configuration
    assert configuration.policy.policy() == Policy.of("plan", deny=["Bash(rm *)"])


@pytest.mark.requirement("runtime.configuration.errors")
def test_all_problems_are_told_at_once_with_their_places(machine: Machine):
    machine.user_file.write_text(
        'agent = "x"\n\n[limits]\nconcurent_runs = 3\nturn_seconds = "x"\n'
    )
    machine.project_file.write_text('sandbox = "off"\nlimits.concurrent_runs = 0\n')
    project, user = machine.project_file, machine.user_file
    expected = """
--set policy.mode: policy.mode expected one of default, acceptEdits, plan, dontAsk, got text 'wild'
FACTWIRE_POLCY_MODE: expected the variable of a setting, got an unknown variable; \
did you mean FACTWIRE_POLICY_MODE?
PROJECT:1: sandbox expected a table, got text 'off'
PROJECT:2: limits.concurrent_runs expected a whole number from 1 to 1000000000, got a whole number 0
USER:4: limits.concurent_runs expected a setting, got an unknown key; \
did you mean limits.concurrent_runs?
USER:5: limits.turn_seconds expected a number, got text 'x'
"""
    problems = machine.problems(("policy.mode", "wild"), FACTWIRE_POLCY_MODE="plan")
    places = expected.replace("PROJECT", str(project)).replace("USER", str(user))
    assert problems == places.strip().split("\n")


WRONG: list[tuple[str, str, str]] = [
    ("journal = 1", "journal", "wrong_type"),
    ('journal = "mysql:x"', "journal", "wrong_value"),
    ('journal = "x.db"', "journal", "wrong_value"),
    ('data = ""', "data", "wrong_value"),
    ('data = "a\\u0007"', "data", "wrong_value"),
    ('workspaces = "x"', "workspaces", "wrong_type"),
    ("workspaces = [1]", "workspaces", "wrong_type"),
    ("agent = true", "agent", "wrong_type"),
    ('policy.allow = "Bash"', "policy.allow", "wrong_type"),
    ('policy.allow = ["Bash("]', "policy.allow", "wrong_value"),
    ('policy.deny = ["Read(../x)"]', "policy.deny", "wrong_value"),
    ("policy = []", "policy", "wrong_type"),
    ('sandbox.network = "true"', "sandbox.network", "wrong_type"),
    ("sandbox.network = 1", "sandbox.network", "wrong_type"),
    ('sandbox.mode = "maybe"', "sandbox.mode", "wrong_value"),
    ("limits.turn_seconds = 0", "limits.turn_seconds", "wrong_value"),
    ("limits.turn_seconds = nan", "limits.turn_seconds", "wrong_value"),
    ("limits.turn_seconds = inf", "limits.turn_seconds", "wrong_value"),
    ("limits.turn_seconds = true", "limits.turn_seconds", "wrong_type"),
    ("retention.keep_days = 0", "retention.keep_days", "wrong_value"),
    ("retention.keep_days = nan", "retention.keep_days", "wrong_value"),
    ("retention.keep_days = '30 days'", "retention.keep_days", "wrong_type"),
    ("retention.keep_facts = 0", "retention.keep_facts", "wrong_value"),
    ("retention.compact = 1", "retention.compact", "wrong_type"),
    ("redaction.patterns = []", "redaction.patterns", "wrong_type"),
    ('redaction.patterns = { "a b" = "abcd" }', "redaction.patterns", "wrong_value"),
    ('redaction.patterns = { a = "(" }', "redaction.patterns", "wrong_value"),
    ("redaction.patterns = { a = 1 }", "redaction.patterns", "wrong_type"),
    ('redaction.never_store = "A_KEY"', "redaction.never_store", "wrong_type"),
    ('redaction.never_store = ["*_*"]', "redaction.never_store", "wrong_value"),
    ('redaction.never_store = ["p@ssw0rd"]', "redaction.never_store", "wrong_value"),
    ("hub.port = 65536", "hub.port", "wrong_value"),
    ("hub.port = 1.5", "hub.port", "wrong_type"),
    ("hub.url = 'hub.example'", "hub.url", "wrong_value"),
    ("hub.database = 'mysql://a/b'", "hub.database", "wrong_value"),
    ("hub.database = 'sqlite:'", "hub.database", "wrong_value"),
    ('hub.mail = { host = "h" }', "hub.mail", "wrong_value"),
    ('hub.mail = { host = "h", sender = "s", user = "u" }', "hub.mail", "wrong_value"),
    (
        '[hub.mail]\nhost = "h"\nsender = "s"\nsecurity = "maybe"',
        "hub.mail.security",
        "wrong_value",
    ),
    ('hub.mail = { host = "h", sender = "s", port = "x" }', "hub.mail.port", "wrong_type"),
    ("hub.proxies = '10.0.0.1'", "hub.proxies", "wrong_type"),
    ("limits.concurrent_runs = 1.5", "limits.concurrent_runs", "wrong_type"),
    ("limits.concurrent_runs = 2026-01-01", "limits.concurrent_runs", "wrong_type"),
    ("limits.concurrent_runs = -1", "limits.concurrent_runs", "wrong_value"),
    ("agents = 1", "agents", "wrong_type"),
    ("agents.x = 1", "agents.x", "wrong_type"),
    ('agents.x.kind = "No Kind"', "agents.x.kind", "wrong_value"),
    ('agents.x.kind = "a"\nagents.x.base_url = "ftp://x"', "agents.x.base_url", "wrong_value"),
    ('agents.x.kind = "a"\nagents.x.options = 1', "agents.x.options", "wrong_type"),
    ('agents.x.model = "a"', "agents.x.kind", "missing_key"),
    ("nonsense = 1", "nonsense", "unknown_key"),
    ("mode = 1", "mode", "unknown_key"),
    ("policy.nonsense = 1", "policy.nonsense", "unknown_key"),
    ('agents."a.b".kind = "a"', "agents.a.b", "unknown_key"),
    ('agents.x.kind = "a"\nagents.x.modl = "a"', "agents.x.modl", "unknown_key"),
    ("[policy.deny.x]\na = 1", "policy.deny", "wrong_type"),
]


@pytest.mark.requirement("runtime.configuration.errors")
@pytest.mark.parametrize(("content", "key", "code"), WRONG)
def test_a_wrong_key_or_value_is_named(machine: Machine, content: str, key: str, code: str):
    machine.project_file.write_text(content + "\n")
    with pytest.raises(ConfigurationError) as raised:
        machine.load()
    [problem] = raised.value.problems
    assert (problem.key, problem.code) == (key, code)
    assert problem.where.startswith(str(machine.project_file))


@pytest.mark.requirement("runtime.configuration.errors")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sandbox.network", "maybe"),
        ("limits.concurrent_runs", "many"),
        ("limits.concurrent_runs", "1.5"),
        ("limits.turn_seconds", "nan"),
        ("policy.allow", '["Bash"'),
        ("policy.allow", "[1]"),
        ("policy.allow", "Bash("),
        ("agents.x.options", "x"),
        ("agents.x.options", "[1]"),
        ("nonsense", "1"),
        ("agents", "1"),
        ("", "1"),
    ],
)
def test_a_wrong_flag_is_named(machine: Machine, key: str, value: str):
    [problem, *_] = machine.problems((key, value))
    assert problem.startswith(f"--set {key}:")


@pytest.mark.requirement("runtime.configuration.errors")
@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("mode", "did you mean policy.mode?"),
        ("limit.turn_seconds", "did you mean limits.turn_seconds?"),
        ("agents.x.api_key", "put the key into an environment variable"),
        ("agents.x.entry_point", "write it as kind = 'module:name'"),
        ("agents.x.base", "did you mean agents.x.base_url?"),
        ("zzzzzz", "there are journal, data, workspaces"),
    ],
)
def test_what_may_have_been_meant_is_said(machine: Machine, key: str, hint: str):
    [problem] = machine.problems((key, "x"))
    assert hint in problem


@pytest.mark.requirement("runtime.configuration.errors")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = ", "expected TOML, got an error in it: Invalid value (at end of document)"),
        (b"a = 1\na = 2\n", "line 2"),
        (b"\xff", "expected text in UTF-8, got byte 0 that is not"),
        (b"#" * (1024 * 1024 + 1), "expected at most 1048576 bytes, got more"),
        (b"a = " + b"[" * 100_000, "TOML"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(machine: Machine, content: bytes, words: str):
    machine.user_file.write_bytes(content)
    [problem] = machine.problems()
    assert problem.startswith(f"{machine.user_file}: expected")
    assert words in problem


@pytest.mark.requirement("runtime.configuration.errors")
def test_a_folder_in_the_place_of_the_users_file_is_named(machine: Machine):
    machine.user_file.mkdir()
    [problem] = machine.problems()
    assert problem == f"{machine.user_file}: expected a file that can be read, got Is a directory"


@pytest.mark.requirement("runtime.configuration.precedence")
def test_an_empty_variable_and_the_token_are_no_settings(machine: Machine):
    resolved = machine.load(FACTWIRE_AGENT="", FACTWIRE_TOKEN="x" * 40, OTHER="y")
    assert resolved.configuration.agent is None


@pytest.mark.requirement("runtime.configuration.secrets")
def test_secrets_are_not_shown(machine: Machine):
    machine.project_file.write_text(
        'journal = "postgres://me:hunter2-secret@db.internal/x"\n'
        '[agents.main]\nkind = "a"\napi_key_env = "MY_API_KEY"\n'
        f'options = {{ api_key = "{KEY}", note = "{KEY}", h = {{ Authorization = "zzzzz" }} }}\n'
    )
    resolved = machine.load(MY_API_KEY=KEY)
    found = {row.key: row for row in list_setting_rows(resolved)}
    shown = msgspec.json.encode(list(found.values())).decode()
    for secret in ("hunter2-secret", KEY, "zzzzz"):
        assert secret not in shown
    assert found["agents.main.api_key_env"] == SettingRow(
        key="agents.main.api_key_env",
        value="MY_API_KEY",
        source="project",
        where=f"{machine.project_file}:4",
        sentence="The variable that contains the key.",
    )
    assert found["agents.main.options"].value["api_key"] == "[redacted]"
    assert resolved.configuration.journal == "postgres://me:hunter2-secret@db.internal/x"


@pytest.mark.requirement("runtime.configuration.secrets")
@pytest.mark.parametrize(
    "content",
    [
        f'agents.x.api_key_env = "{KEY}"',
        'agents.x.api_key_env = "correcthorse"',
        f'agents.x.api_key = "{KEY}"',
        f'api_key = "{KEY}"',
        f'policy.mode = "{KEY}"',
        'journal = "mysql://me:correcthorse@db/x"',
        'agents.x.base_url = "https://me:correcthorse@db/x"',
        f'agents.x.options = "{KEY}"',
        f'limits.turn_seconds = "{" " * 70}{KEY}"',
    ],
)
def test_an_error_does_not_repeat_a_secret(machine: Machine, content: str):
    machine.project_file.write_text(content + "\n")
    text = "\n".join(machine.problems())
    assert KEY not in text
    assert KEY[:20] not in text
    assert "correcthorse" not in text


@pytest.mark.requirement("runtime.configuration.secrets")
def test_rows_name_every_setting_once(machine: Machine):
    found = list_setting_rows(machine.load())
    assert [row.key for row in found] == list(SETTINGS)
    assert all(row.sentence.endswith(".") for row in found)


NAMED_SAMPLES = {
    "an agent": '[agents.mine]\nkind = "evil:agent"\nbase_url = "http://evil.example"\n',
    "a built-in agent": '[agents.demo]\nkind = "evil:agent"\n',
    "a key": '[agents.openai]\nkind = "openai"\napi_key_env = "AWS_SECRET_ACCESS_KEY"\n',
    "a server": '[mcp.files]\ncommand = ["./evil"]\n',
    "rules": '[policy]\nallow = ["*"]\nask = ["x"]\ndeny = ["y"]\n',
    "no TOML": "= = =\n",
    "another type": 'sandbox = "off"\n',
    "an unknown key": "agnt = 1\n",
    "nothing": "",
    "no text": "\x00",
    "much": "#" * 2_000_000,
}
"""What a repository may bring along, beside each setting."""

HOSTILE_FILES = NAMED_SAMPLES | {
    key: f"{key} = {sample.toml[number]}\n"
    for key, sample in SAMPLES.items()
    for number in range(2)
}


def load_untrusted(machine: Machine) -> ResolvedConfiguration:
    return load_configuration(machine.place, environment=machine.variables)


@pytest.mark.requirement("runtime.configuration.trust")
@pytest.mark.parametrize("where", ["here", "above"])
@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_a_file_that_nobody_trusted_counts_for_nothing(machine: Machine, name: str, where: str):
    before = load_untrusted(machine)
    folder = machine.place if where == "here" else machine.project
    (folder / "factwire.toml").write_text(HOSTILE_FILES[name])
    untrusted = UntrustedProject(path=str(folder / "factwire.toml"), reason="new")
    assert load_untrusted(machine) == msgspec.structs.replace(before, untrusted=untrusted)


@pytest.mark.requirement("runtime.configuration.trust")
@given(st.lists(st.sampled_from(["trust", "untrust", "edit", "restore", "move"]), max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_file_counts_exactly_as_long_as_it_is_what_was_trusted(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
):
    """Against a model: the content that was trusted at each place."""
    machine = Machine(tmp_path_factory.mktemp("trust").resolve())
    places = [machine.place / "factwire.toml", machine.project / "factwire.toml"]
    trusted: dict[Path, str] = {}
    at, content = 0, 'agent = "a"\n'
    for step in steps:
        trust = ProjectTrust(machine.variables)
        places[at].write_text(content)
        if step == "trust":
            trust.add(read_project_file(places[at]))
            trusted[places[at]] = content
        elif step == "untrust":
            assert trust.remove(places[at]) == (trusted.pop(places[at], None) is not None)
        elif step == "edit":
            content += "# more\n"
        elif step == "restore":
            content = 'agent = "a"\n'
        else:
            places[at].unlink()
            at = 1 - at
        places[at].write_text(content)
        found = load_untrusted(machine)
        known = trusted.get(places[at])
        reason = None if known == content else "new" if known is None else "changed"
        assert found.configuration.agent == ("a" if reason is None else None)
        assert (found.untrusted and found.untrusted.reason) == reason
        listed = {Path(each.path): each.content for each in trust.list_projects()}
        assert listed == trusted


@pytest.mark.requirement("runtime.configuration.trust")
def test_a_link_is_trusted_by_the_bytes_that_it_leads_to(machine: Machine):
    mine, evil = machine.project / "mine.toml", machine.project / "evil.toml"
    mine.write_text('agent = "mine"\n')
    evil.write_text('agent = "evil"\n')
    link = machine.place / "factwire.toml"
    link.symlink_to(mine)
    ProjectTrust(machine.variables).add(read_project_file(link))
    assert load_untrusted(machine).configuration.agent == "mine"
    link.unlink()
    link.symlink_to(evil)
    assert load_untrusted(machine).configuration.agent is None
    link.unlink()
    mine.rename(link)
    assert load_untrusted(machine).configuration.agent == "mine"


@pytest.mark.requirement("runtime.configuration.trust")
def test_a_folder_is_the_same_by_whatever_link_one_comes(machine: Machine, tmp_path: Path):
    machine.project_file.write_text('agent = "mine"\n')
    (tmp_path / "other").symlink_to(machine.project)
    ProjectTrust(machine.variables).add(read_project_file(tmp_path / "other" / "factwire.toml"))
    assert load_untrusted(machine).configuration.agent == "mine"


@pytest.mark.requirement("runtime.configuration.trust")
def test_the_bytes_that_are_checked_are_those_that_are_parsed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    """A file that is swapped right after it was read, whenever that is."""
    good, evil = 'agent = "good"\n', 'agent = "evil"\n'
    machine.project_file.write_text(good)
    ProjectTrust(machine.variables).add(read_project_file(machine.project_file))
    check = ProjectTrust.check

    def swap(trust: ProjectTrust, file: ProjectFile) -> UntrustedProject | None:
        machine.project_file.write_text(evil)
        return check(trust, file)

    monkeypatch.setattr(ProjectTrust, "check", swap)
    assert load_untrusted(machine).configuration.agent == "good"
    assert load_untrusted(machine).configuration.agent is None


def spoil_list(spoil: str, path: Path) -> None:
    data = path.read_bytes()
    contents = {
        "empty": b"",
        "truncated": data[: len(data) // 2],
        "garbage": b"\xff" * 100,
        "wrong type": b'{"format": 1}',
        "another format": data.replace(b"/v1", b"/v9"),
    }
    if spoil in contents:
        path.write_bytes(contents[spoil])
    elif spoil == "writable by others":
        path.chmod(0o666)
    else:
        path.unlink()
        path.mkdir() if spoil == "folder" else path.symlink_to("/nowhere/at/all")


SPOILS = [
    *("empty", "truncated", "garbage", "wrong type", "another format"),
    *("writable by others", "folder"),
]


@pytest.mark.requirement("runtime.configuration.trust")
@pytest.mark.parametrize("spoil", SPOILS)
def test_a_list_that_cannot_be_relied_on_trusts_nothing(machine: Machine, spoil: str):
    machine.project_file.write_text('agent = "mine"\n')
    trust = ProjectTrust(machine.variables)
    trust.add(read_project_file(machine.project_file))
    assert trust.path.stat().st_mode & 0o777 == 0o600
    spoil_list(spoil, trust.path)
    found = load_untrusted(machine)
    assert found.configuration.agent is None
    assert found.untrusted
    assert found.untrusted.reason == "list_unusable"
    assert str(trust.path) in str(found.untrusted)
    if spoil != "folder":
        trust.add(read_project_file(machine.project_file))
        assert load_untrusted(machine).configuration.agent == "mine"
