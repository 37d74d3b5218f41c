"""A seccomp filter that takes the kernel's keyrings away: they are shared by every process of a user."""

from __future__ import annotations

import os
import struct

__all__ = ["program"]

# struct sock_filter: code, jump if true, jump if false, constant (linux/filter.h)
_LOAD_WORD = 0x20
_JUMP_IF_EQUAL = 0x15
_RETURN = 0x06
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET = 0, 4
_ALLOW = 0x7FFF0000
_NO_SUCH_CALL = 0x00050000 | 38  # SECCOMP_RET_ERRNO | ENOSYS: as on a kernel without keyrings
_X32 = 0x40000000

# AUDIT_ARCH_* -> numbers of add_key, request_key, keyctl, for every mode in which a process of a machine may call.
_KEY_CALLS: dict[str, dict[int, tuple[int, ...]]] = {
    "x86_64": {
        0xC000003E: (248, 249, 250, 248 | _X32, 249 | _X32, 250 | _X32),
        0x40000003: (286, 287, 288),
    },
    "aarch64": {0xC00000B7: (217, 218, 219), 0x40000028: (309, 310, 311)},
}

_programs: dict[str, bytes] = {}  # those assembled so far


def program(machine: str | None = None) -> bytes:
    """The filter for *machine* (default: this one); raises :class:`OSError` (ENOSYS) for one that is not known here."""
    name = machine or os.uname().machine
    if name in _programs:
        return _programs[name]
    if name not in _KEY_CALLS:
        raise OSError(38, f"the numbers of the keyring calls on {name} are not known here")
    _programs[name] = _assemble(_KEY_CALLS[name])
    return _programs[name]


def _assemble(calls: dict[int, tuple[int, ...]]) -> bytes:
    words = [_instruction(_LOAD_WORD, 0, 0, _ARCHITECTURE_OFFSET)]
    for architecture, numbers in calls.items():
        # Of another architecture: past this block, which is one load, a test for each number, and two returns.
        words.append(_instruction(_JUMP_IF_EQUAL, 0, len(numbers) + 3, architecture))
        words.append(_instruction(_LOAD_WORD, 0, 0, _NUMBER_OFFSET))
        words += [_instruction(_JUMP_IF_EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
        words.append(_instruction(_RETURN, 0, 0, _ALLOW))
        words.append(_instruction(_RETURN, 0, 0, _NO_SUCH_CALL))
    # An architecture that this machine should not have.
    words.append(_instruction(_RETURN, 0, 0, _NO_SUCH_CALL))
    return b"".join(words)


def _instruction(code: int, if_true: int, if_false: int, constant: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, constant)
