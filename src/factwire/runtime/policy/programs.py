"""Names that a shell or the system gives a meaning to, as tables."""

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS: Final = _names(
    "if then else elif fi for while until do done case esac in select function coproc { } ! [[ ]]"
)
"""Words that start something other than a simple command."""

MOVING: Final = _names("cd pushd popd chdir")
"""Builtins after which relative paths mean something else."""

HARMLESS_VARIABLES: Final = _names(
    "CI COLUMNS FORCE_COLOR LANG LC_ALL LC_CTYPE LINES NO_COLOR TERM TZ RUST_BACKTRACE"
)
"""Variables that cannot make a program run something else; any other has to be in the rule."""

CHANGING: Final = _names(
    ". source eval exec alias unalias trap set shopt enable hash export declare typeset local"
    " readonly unset builtin let read getopts mapfile readarray bind complete function coproc"
    " fc history umask ulimit wait jobs fg bg disown suspend setopt unsetopt autoload zmodload"
    " emulate noglob nocorrect"
)
"""Builtins that change what later commands mean, or hide what they run."""

RUNNING: Final = _names(
    "watch parallel su script strace ltrace gdb flock busybox toybox chroot unshare nsenter"
    " systemd-run setpriv runuser pkexec ionice chrt taskset expect entr unbuffer rlwrap at batch"
    " crontab start-stop-daemon daemonize setarch numactl prlimit cgexec firejail bwrap faketime"
    " dbus-run-session xvfb-run ssh-agent screen tmux fish csh tcsh pwsh nu"
)
"""Programs that run others by options too many to know."""

SHELLS: Final = _names("sh bash dash zsh ksh ash mksh")
"""Shells whose `-c` takes the language that is read here."""

INTERPRETERS: Final = _names("python python3 perl ruby node php")
"""Programs that run what is piped into them."""

PRIVILEGED: Final = _names("sudo doas")
"""Programs that run others with the rights of another user."""
