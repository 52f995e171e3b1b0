"""Promises of the repository itself: how code is cut and named, exact exports, listed verbs, pins
without hosts. `design/0019-names-and-modules.md` has the reasons.
"""

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import factwire
from factwire.edge.edge_app import PROBLEM_CODES
from factwire.edge.operations.run_operations import REFUSAL_STATUSES
from factwire.hub.hub_app import HUB_PROBLEM_CODES, HUB_START_CODES
from factwire.hub.mirror.mirror_app import MIRROR_PROBLEM_CODES
from factwire.hub.mirror.mirror_store import UploadRefused
from factwire.hub.records.hub_database import RecordsError, RecordsUnavailable
from factwire.hub.teams.guardrails import GUARDRAILS
from factwire.journal import ChainPointUnknown, CursorError, JournalError, MirrorRefused
from factwire.journal.blobs.blob_store import BlobCorrupt, BlobMissing
from factwire.journal.errors import AppendRefused
from factwire.runtime import RuntimeRefused
from factwire.runtime.sandbox.worktree import WorktreeUnavailable
from factwire.runtime.sandbox.worktree_merge import MergeRefused, MergeUnfinished
from factwire.sources.kit.program import NotInstalled
from tools import check_hosts

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = [
    "factwire",
    *(found.name for found in pkgutil.walk_packages(factwire.__path__, "factwire.") if found.ispkg),
]
PIN = re.compile(
    r"#.*"
    r"|[a-z0-9][a-z0-9.-]*(\[[a-z,-]+\])?==[^ ]+( ; [^\\]+)?( \\)?"
    r"| +--hash=sha256:[0-9a-f]{64}( \\)?"
    r"| +# .*"
)

SOURCE = ROOT / "src" / "factwire"
MOST_MODULES = 475
MOST_HUB_MODULES = 145
MOST_LINES = 850
FEWEST_IN_A_FOLDER = 3

SMALL_FOLDERS = {
    "sources/ag_ui": "an agent is a folder, however little there is to say of it",
    "sources/ai_sdk": "the same",
}

# Name → the folders that may have a module of this name, each for its own case of one idea.
PARALLEL_MODULES = {
    # What every package has: its errors, and its numbers with a sentence for each.
    "errors": ("*",),
    "limits": ("*",),
    # The same steps for each agent.
    "convert": ("sources/*",),
    "live": ("sources/*",),
    "observe": ("sources/*",),
    "permission_requests": ("sources/*",),
    # The same parts for each backend, and what they share above them.
    "handle": ("journal/*",),
    "journal": ("journal/*",),
    "journal_state": ("journal/*",),
    "reader": ("journal/*",),
    "retention": ("journal", "journal/*"),
    "schema": ("journal/*",),
    "server_connection": ("journal/*",),
    "snapshots": ("journal/*",),
    "writer": ("journal/*",),
    # What an Edge answers, as both sides declare it and as the client names it.
    "resources": ("client", "facts"),
    # Ours, and those of others that a report holds against ours.
    "reducers": ("conformance", "projection"),
    # JSON Schema of a package's types.
    "schemas": ("evidence", "projection"),
}

SHARED_CLASS_NAMES: dict[str, str] = {}
"""Public class name → why two classes may have it."""

VAGUE_NAMES = ("told", "said", "given", "asked")
_MAYBE_VAGUE = re.compile(
    rf"(?:\b(?:def|for|as|lambda) |[,(*.:] ?|^ *)_*(?:{'|'.join(VAGUE_NAMES)})_*"
    r"(?: *[-+|&]?[=:,)(\[]| in\b)",
    re.MULTILINE,
)
"""Where such a name may stand: a tree is made of the few files that have one."""
_PUBLIC_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)


@cache
def read_modules() -> dict[str, str]:
    """Each module of the package, by its path in it."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in paths}


def find_shared(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that more than one place has."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, place in pairs:
        places[name].append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def find_vague_names(text: str) -> Iterator[str]:
    """Functions, parameters, variables and attributes that are called by a bare participle."""
    if not _MAYBE_VAGUE.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                pass
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                pass
            case _:
                continue
        if name.strip("_") in VAGUE_NAMES:
            yield f"{node.lineno}: {name}"


def test_the_package_has_few_modules_and_none_is_long():
    modules = read_modules()
    of_hub = [path for path in modules if path.startswith("hub/")]
    assert len(of_hub) <= MOST_HUB_MODULES
    assert len(modules) - len(of_hub) <= MOST_MODULES
    assert [path for path, text in modules.items() if text.count("\n") > MOST_LINES] == []


def test_a_folder_holds_enough_to_be_one():
    folders = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
    counts = {
        folder.relative_to(SOURCE).as_posix(): sum(
            path.stem != "__init__" for path in folder.glob("*.py")
        )
        + sum((path / "__init__.py").exists() for path in folder.iterdir())
        for folder in folders
    }
    small = {name for name, count in counts.items() if count < FEWEST_IN_A_FOLDER}
    assert small == set(SMALL_FOLDERS)


def test_a_module_name_is_used_once_or_for_parallel_modules():
    paths = [Path(path) for path in read_modules()]
    shared = find_shared(
        (path.stem, path.parent.as_posix()) for path in paths if path.stem != "__init__"
    )
    misplaced = [
        f"{folder}/{name}.py"
        for name, folders in shared.items()
        for folder in folders
        if not any(fnmatch(folder, pattern) for pattern in PARALLEL_MODULES.get(name, ()))
    ]
    assert misplaced == []
    assert sorted(PARALLEL_MODULES) == sorted(shared), "a name that is used once needs no row"


def test_a_public_class_name_is_used_once():
    shared = find_shared(
        (name, path)
        for path, text in read_modules().items()
        for name in _PUBLIC_CLASS.findall(text)
    )
    assert {name: found for name, found in shared.items() if name not in SHARED_CLASS_NAMES} == {}
    assert sorted(SHARED_CLASS_NAMES) == sorted(set(SHARED_CLASS_NAMES) & set(shared))


@pytest.mark.parametrize("folder", ["src/factwire", "tests", "tools", "bench"])
def test_no_name_is_a_bare_participle(folder: str):
    paths = (path for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts)
    found = [
        f"{path.relative_to(ROOT)}:{name}"
        for path in paths
        for name in find_vague_names(path.read_text("utf-8"))
    ]
    assert found == []


def test_a_bare_participle_is_found_wherever_it_is_a_name():
    text = (
        "def told(_said, *, x=1):\n    given = x\n    x.asked = given\n    'told and asked'\n"
        "    for x, told in x: said += 1\n"
    )
    found = ["1: _said", "1: told", "2: given", "3: asked", "5: said", "5: told"]
    assert sorted(find_vague_names(text)) == found


def constants_then_classes_then_the_rest(name: str) -> tuple[bool, bool, str]:
    return (not name.isupper(), not name[0].isupper(), name)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_exports_exactly_its_public_names_in_order(name: str):
    package = importlib.import_module(name)
    public = {
        key
        for key, value in vars(package).items()
        if not key.startswith("_") and not isinstance(value, ModuleType)
    }
    if name == "factwire":
        public.add("__version__")
    assert list(package.__all__) == sorted(public, key=constants_then_classes_then_the_rest)


_ORDINARY_PATH = re.compile(r"[A-Za-z0-9_@+.-]+(/[A-Za-z0-9_@+.-]+)*")


def find_stray_files(root: Path, paths: Iterable[str]) -> list[str]:
    """Files that nobody meant to keep: empty ones, and those with an odd name."""
    return [
        path
        for path in paths
        if not _ORDINARY_PATH.fullmatch(path)
        or ((root / path).is_file() and not (root / path).stat().st_size)
    ]


def test_no_stray_file_is_kept():
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    kept = listing.stdout.split("\0")[:-1]
    # An empty file is how typing tools are told that a package has types.
    assert find_stray_files(ROOT, kept) == ["src/factwire/py.typed"]


def test_a_stray_file_is_found_by_its_name_or_because_it_is_empty(tmp_path: Path):
    for name, text in {"kept.py": "1", "empty.py": "", ":memory:": "", "a b": "1"}.items():
        (tmp_path / name).write_text(text)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert find_stray_files(tmp_path, names) == [":memory:", "a b", "empty.py"]


def test_help_lists_every_verb():
    verbs = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert verbs
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    listing = subprocess.run(
        ["make", "help"], cwd=ROOT, env=clean, check=True, capture_output=True, text=True
    )
    listed = [line.split()[0] for line in listing.stdout.splitlines()]
    assert sorted(listed) == sorted(verbs[1].split())


def test_the_changelog_has_a_place_for_what_comes_next():
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", ["dev.txt", "uv.txt"])
def test_pins_are_versions_and_hashes_alone(name: str):
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    assert sum("==" in line for line in lines) <= sum("--hash=" in line for line in lines)


def test_the_pinned_uv_is_the_one_that_installs_the_rest():
    pins = [
        re.search(r"^uv==(\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
        for name in ("dev.txt", "uv.txt")
    ]
    assert pins[0]
    assert pins[1]
    assert pins[0][1] == pins[1][1]


def test_there_is_no_lock_file_that_names_hosts():
    assert not (ROOT / "uv.lock").exists()


@pytest.mark.parametrize("text", ["python" + "hosted.org", "PyPI" + ".org", str(ROOT / "src")])
def test_a_host_or_a_machine_folder_is_found_with_its_line(text: str, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"fine\nsee {text}\n")
    found = list(check_hosts.findings(page, check_hosts.forbidden()))
    assert [finding.split(": ")[0] for finding in found] == [f"{page}:2"]


def test_ordinary_text_names_no_host():
    text = "PyPI, npm, example.org and the folder framework/"
    assert check_hosts.forbidden().search(text) is None


# Function → the errors whose codes it answers with.
ERROR_PROBLEMS: dict[str, tuple[type[Exception], ...]] = {
    "_answer_refusal": (RuntimeRefused, NotInstalled),
    "translate_refusals": (RuntimeRefused,),
    "_answer_journal_error": (JournalError, BlobCorrupt, BlobMissing),
    "_wait_for_append": (AppendRefused,),
    "make_worktree": (WorktreeUnavailable,),
    # Codes of evidence packs, which have their own page.
    "_translate_refusals": (),
    # Its codes are in a table of its own, by status.
    "_answer_http_error": (),
    # Its codes are in a table of its own, by what is named.
    "ensure_public": (),
    "_telling_failures": (MergeRefused, MergeUnfinished),
}


def _made_codes(
    root: str, place: int, folders: tuple[str, ...] = ("edge", "serving")
) -> Iterator[tuple[str, ast.expr]]:
    """The code of each `root` that is made, and the function that makes it; one that gets the code
    as a parameter makes what it is called with.
    """
    for path in sorted(path for each in folders for path in SOURCE.glob(f"{each}/**/*.py")):
        tree = ast.parse(path.read_text())
        places, makers = {root: place}, dict[ast.AST, str]()
        for function in _functions(tree):
            parameters = [each.arg for each in function.args.args]
            makers |= dict.fromkeys(ast.walk(function), function.name)
            if getattr(function.returns, "id", "") == root and "code" in parameters:
                places[function.name] = parameters.index("code")
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name, maker = getattr(call.func, "id", ""), makers.get(call, "")
            if name in places and maker not in places:
                yield maker, call.args[places[name]]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = ast.walk(tree)
    return (n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def _codes_of(error: type[Any]) -> Iterator[str]:
    yield REFUSAL_STATUSES.get(error.code, (0, error.code))[1]
    for below in error.__subclasses__():
        if below.__module__.startswith("factwire."):
            yield from _codes_of(below)


def test_every_code_of_a_problem_is_documented():
    made = list(_made_codes("Problem", 1))
    literal = {code.value for _, code in made if isinstance(code, ast.Constant)}
    computed = {name for name, code in made if not isinstance(code, ast.Constant)}
    assert computed == ERROR_PROBLEMS.keys()
    of_errors = {
        code for errors in ERROR_PROBLEMS.values() for each in errors for code in _codes_of(each)
    }
    # Every other wrong cursor is `cursor_invalid`.
    cursors = set(_codes_of(CursorError)) - {"cursor_expired"}
    # What a mirror refuses, a Hub answers.
    mirrors = {*_codes_of(MirrorRefused), ChainPointUnknown.code}
    assert (literal | of_errors) - cursors - mirrors == PROBLEM_CODES.keys()
    codes = (ROOT / "docs" / "reference" / "codes.md").read_text(encoding="utf-8")
    assert [code for code in PROBLEM_CODES if f"| `{code}` |" not in codes] == []


def test_every_code_of_a_mirror_is_documented():
    made = [code for _, code in _made_codes("Problem", 1, ("hub/mirror",))]
    literal = {code.value for code in made if isinstance(code, ast.Constant)}
    refusals = {error.code for error in UploadRefused.__subclasses__()}
    own = {*literal, *refusals, *_codes_of(MirrorRefused)}
    assert own - PROBLEM_CODES.keys() == MIRROR_PROBLEM_CODES.keys()
    codes = (ROOT / "docs" / "reference" / "codes.md").read_text(encoding="utf-8")
    assert [code for code in MIRROR_PROBLEM_CODES if f"| `{code}` |" not in codes] == []


def test_every_code_of_a_hub_is_documented():
    made = list(_made_codes("Problem", 1, ("hub",)))
    literal = {code.value for _, code in made if isinstance(code, ast.Constant)}
    computed = {name for name, code in made if not isinstance(code, ast.Constant)}
    assert computed == {
        "_answer_unavailable",
        "_answer_upload_refusal",
        # What an Edge refuses a decision with.
        "_wait_for_device",
        "check_target",
        # What an Edge refuses a merge with.
        "_ensure_answered",
        # What evidence refuses.
        "export_run",
        # The code of a guardrail.
        "ensure_accepted",
        "ensure_credentials",
    }
    targets = {"address", "host", "invalid", "port", "scheme"}
    own = literal | {RecordsUnavailable.code}
    own |= {f"target_{word}" for word in targets} | {each.code for each in GUARDRAILS}
    # A Hub may say in its own words what a code of an Edge means there.
    known = PROBLEM_CODES.keys() | MIRROR_PROBLEM_CODES.keys()
    assert own - known <= HUB_PROBLEM_CODES.keys() <= own
    insecure = [code for _, code in _made_codes("InsecureStart", 0, ("hub",))]
    starts = {code.value for code in insecure if isinstance(code, ast.Constant)}
    assert len(insecure) == 3
    starts |= {error.code for error in RecordsError.__subclasses__()}
    assert starts <= HUB_START_CODES.keys()
    codes = (ROOT / "docs" / "reference" / "codes.md").read_text(encoding="utf-8")
    listed = {**HUB_PROBLEM_CODES, **HUB_START_CODES}
    assert [code for code in listed if f"| `{code}` |" not in codes] == []


def test_every_reason_not_to_start_is_documented():
    operations = (ROOT / "docs" / "edge-operations.md").read_text(encoding="utf-8")
    made = [code for _, code in _made_codes("InsecureStart", 0)]
    # What is made of another reason not to start has its code.
    codes = [code.value for code in made if isinstance(code, ast.Constant)]
    assert codes
    assert [code for code in codes if f"`{code}`" not in operations] == []


# Module → the declared package whose interface it is a part of.
IMPORTED_WITH = {
    "anyio": "mcp",
    "httpx2": "mcp",
    "mcp_types": "mcp",
    "openai": "pydantic-ai-slim",
    "pydantic": "mcp",
    "pydantic_core": "pydantic",
    "referencing": "jsonschema",
}


def test_every_imported_package_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {re.split(r"[\[>;= ]", line)[0] for lines in named for line in lines}
    owners = metadata.packages_distributions()
    undeclared = {
        top
        for path in SOURCE.rglob("*.py")
        for top in _imported_packages(ast.parse(path.read_text()))
        if declared.isdisjoint(name.lower().replace("_", "-") for name in owners.get(top, ()))
    }
    assert undeclared - {"pytest"} == IMPORTED_WITH.keys()


def _imported_packages(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [each.name for each in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case _:
                continue
        for top in (module.partition(".")[0] for module in modules):
            if top not in sys.stdlib_module_names and top != "factwire":
                yield top
