"""A filter of system calls, as the bytes that the kernel loads; pure.

A sandbox may write to its workspace, and a file there with the set-user-id bit would lend our user
to anybody on the machine who runs it: a way out that no mount closes. So no call may set that bit,
and calls whose arguments a filter cannot see are absent. Kernel keyrings, which no namespace
separates, and typing into a terminal are closed as well.
"""

import struct
from typing import Final, NamedTuple

_LOAD: Final = 0x20
_EQUALS: Final = 0x15
_AT_LEAST: Final = 0x35
_HAS_BITS: Final = 0x45
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_EPERM: Final = 1
_ENOSYS: Final = 38

_NUMBER: Final = 0
_MACHINE: Final = 4
_ARGUMENTS: Final = 16

_SET_ID_BITS: Final = 0o6000
_CREATES: Final = 0o100 | 0o20000000
_FIRST_FOREIGN: Final = 0x40000000
_TERMINAL_REQUESTS: Final = (0x5412, 0x541C)

Instruction = tuple[int, int, int, int]


class Machine(NamedTuple):
    """Numbers of system calls on one kind of machine, and where their mode stands."""

    code: int
    absent: tuple[int, ...]
    modes: dict[int, int]
    opens: dict[int, tuple[int, int]]
    ioctl: int


_MACHINES: Final = {
    "x86_64": Machine(
        code=0xC000003E,
        absent=(248, 249, 250, 425, 437),
        modes={90: 1, 91: 1, 268: 2, 452: 2, 133: 1, 259: 2, 85: 1},
        opens={2: (1, 2), 257: (2, 3)},
        ioctl=16,
    ),
    "aarch64": Machine(
        code=0xC00000B7,
        absent=(217, 218, 219, 425, 437),
        modes={52: 1, 53: 2, 452: 2, 33: 2},
        opens={56: (2, 3)},
        ioctl=29,
    ),
}
"""absent: add_key, request_key, keyctl, io_uring_setup, openat2. modes: call → argument with the
mode. opens: call → arguments with the flags and the mode."""


def system_call_filter(machine: str) -> bytes | None:
    """The filter for a machine as `uname -m` calls it; None for one that we do not know."""
    known = _MACHINES.get(machine)
    if known is None:
        return None
    program = _preamble(known)
    for number in known.absent:
        program += _when(number, [_answer(_ENOSYS)])
    for number, mode in known.modes.items():
        program += _when(number, _refuse_set_id(mode))
    for number, (flags, mode) in known.opens.items():
        check = _refuse_set_id(mode)
        skipped = (_HAS_BITS, 0, len(check) - 1, _CREATES)
        program += _when(number, [_argument(flags), skipped, *check])
    program += _when(known.ioctl, _refuse_typing())
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _preamble(machine: Machine) -> list[Instruction]:
    """Calls in the manner of another machine would have other numbers."""
    return [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUALS, 1, 0, machine.code),
        _answer(_ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _FIRST_FOREIGN),
        _answer(_ENOSYS),
    ]


def _when(number: int, block: list[Instruction]) -> list[Instruction]:
    return [(_LOAD, 0, 0, _NUMBER), (_EQUALS, 0, len(block), number), *block]


def _refuse_set_id(argument: int) -> list[Instruction]:
    return [
        _argument(argument),
        (_HAS_BITS, 0, 1, _SET_ID_BITS),
        _answer(_EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _refuse_typing() -> list[Instruction]:
    first, second = _TERMINAL_REQUESTS
    return [
        _argument(1),
        (_EQUALS, 1, 0, first),
        (_EQUALS, 0, 1, second),
        _answer(_EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _answer(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | error)
