"""Loading: finds and reads the files. Nothing is decided here.

The project's file is `factwire.toml` in the workspace, or in the nearest folder above it. The file
of a folder above counts only when it belongs to the same user or to the system: in a shared folder
anybody can leave one.
"""

import os
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from factwire.runtime.configuration.errors import ConfigurationError, Problem
from factwire.runtime.configuration.layers import (
    Layer,
    SourceKind,
    environment_layer,
    file_layer,
    flag_layer,
)
from factwire.runtime.configuration.resolution import Resolved, resolve
from factwire.runtime.configuration.values import Base

PROJECT_FILE: Final = "factwire.toml"

LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a configuration file; no person writes more."""


def load_configuration(
    folder: Path | None = None,
    *,
    flags: Sequence[tuple[str, str]] = (),
    environment: Mapping[str, str] | None = None,
) -> Resolved:
    """The configuration that holds in a folder; raises `ConfigurationError`."""
    variables = os.environ if environment is None else environment
    place = (folder or Path.cwd()).absolute()
    home = variables.get("HOME") or str(Path.home())
    text_base = Base(str(place), home, textual=True)
    user = _folder(variables, "XDG_CONFIG_HOME", Path(home, ".config")) / "factwire" / "config.toml"
    project = project_file(place)
    layers = (
        flag_layer(flags, text_base),
        environment_layer(variables, text_base),
        _layer("project", project, home) if project is not None else Layer(),
        _layer("user", user, home) if _is_there(user) else Layer(),
    )
    state = _folder(variables, "XDG_STATE_HOME", Path(home, ".local", "state")) / "factwire"
    return resolve(layers, str(state))


def project_file(folder: Path) -> Path | None:
    """The nearest project file in a folder or above it."""
    for place in (folder, *folder.parents):
        file = place / PROJECT_FILE
        if place == folder and _is_there(file) and file.is_file():
            return file
        if place != folder and _is_trusted(file):
            return file
    return None


def _is_there(file: Path) -> bool:
    """Whether a file is there; one that nobody can tell of is an error, and not none."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _unreadable(file, "a place that can be looked at", reason) from error
    return True


def _is_trusted(file: Path) -> bool:
    """Whether a file above the folder is there and counts; one that cannot be seen does not."""
    try:
        about = file.stat()
    except OSError:
        return False
    mine = not hasattr(os, "geteuid") or about.st_uid in (0, os.geteuid())
    return mine and stat.S_ISREG(about.st_mode)


def _folder(variables: Mapping[str, str], name: str, default: Path) -> Path:
    """A folder of the XDG specification, which says to ignore a relative one."""
    given = Path(variables.get(name, ""))
    return given if given.is_absolute() else default


def _layer(source: SourceKind, file: Path, home: str) -> Layer:
    content, table = _parsed(file)
    return file_layer(source, str(file), content, table, Base(str(file.parent), home))


def _parsed(file: Path) -> tuple[str, dict[str, Any]]:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise _unreadable(file, f"at most {LARGEST_FILE} bytes", "more")
        content = file.read_text("utf-8")
        return content, tomllib.loads(content)
    except UnicodeDecodeError as error:
        raise _unreadable(file, "text in UTF-8", f"byte {error.start} that is not") from error
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(file, "TOML", f"an error in it: {error}") from error
    except RecursionError as error:
        raise _unreadable(file, "TOML", "tables too deep to be read") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _unreadable(file, "a file that can be read", reason) from error


def _unreadable(file: Path, expected: str, got: str) -> ConfigurationError:
    problem = Problem(code="unreadable", where=str(file), expected=expected, got=got)
    return ConfigurationError((problem,))
