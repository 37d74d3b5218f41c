"""Seccomp filters: one takes away the keyrings, which all processes of a user share, one takes away sockets."""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LOCAL_FAMILIES", "NETWORK_FAMILIES", "program", "socket_program"]

# struct sock_filter: code, jump if true, jump if false, constant (linux/filter.h)
_LOAD_WORD = 0x20
_JUMP_IF_EQUAL = 0x15
_RETURN = 0x06
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _FIRST_ARGUMENT_OFFSET = (
    0,
    4,
    16,
)  # its low half: these machines are little-endian
_ALLOW = 0x7FFF0000
_NO_SUCH_CALL = 0x00050000 | 38  # SECCOMP_RET_ERRNO | ENOSYS: as on a kernel without keyrings
_NO_SUCH_FAMILY = 0x00050000 | 97  # SECCOMP_RET_ERRNO | EAFNOSUPPORT
_X32 = 0x40000000

# AF_UNIX, AF_NETLINK (which looks at interfaces), AF_INET, AF_INET6: a network namespace holds all of them back. Others
# go past it: AF_VSOCK leads to the host of a virtual machine.
LOCAL_FAMILIES = (1, 16)
NETWORK_FAMILIES = (*LOCAL_FAMILIES, 2, 10)

# AUDIT_ARCH_* -> numbers of add_key, request_key, keyctl, for every mode in which a process of a machine may call.
_KEY_CALLS: dict[str, dict[int, tuple[int, ...]]] = {
    "x86_64": {
        0xC000003E: (248, 249, 250, 248 | _X32, 249 | _X32, 250 | _X32),
        0x40000003: (286, 287, 288),
    },
    "aarch64": {0xC00000B7: (217, 218, 219), 0x40000028: (309, 310, 311)},
}

# AUDIT_ARCH_* -> numbers of socket and socketpair, and of the calls that would make a socket whose family no filter
# sees: socketcall, io_uring_setup.
_SOCKET_CALLS: dict[str, dict[int, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "x86_64": {
        0xC000003E: ((41, 53, 41 | _X32, 53 | _X32), (425, 425 | _X32)),
        0x40000003: ((359, 360), (102, 425)),
    },
    "aarch64": {0xC00000B7: ((198, 199), (425,)), 0x40000028: ((281, 288), (102, 425))},
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


def socket_program(families: Sequence[int], machine: str | None = None) -> bytes:
    """The filter that lets sockets of *families* be made, and no others; raises as :func:`program`."""
    name = machine or os.uname().machine
    if name not in _SOCKET_CALLS:
        raise OSError(38, f"the numbers of the socket calls on {name} are not known here")
    words = [_instruction(_LOAD_WORD, 0, 0, _ARCHITECTURE_OFFSET)]
    for architecture, (judged, refused) in _SOCKET_CALLS[name].items():
        block = _socket_block(judged, refused, families)
        words += [_instruction(_JUMP_IF_EQUAL, 0, len(block), architecture), *block]
    words.append(_instruction(_RETURN, 0, 0, _NO_SUCH_CALL))
    return b"".join(words)


def _socket_block(judged: Sequence[int], refused: Sequence[int], families: Sequence[int]) -> list[bytes]:
    """What is asked of a call of one architecture: first its number, then the family that it names."""
    ends = [_instruction(_RETURN, 0, 0, result) for result in (_ALLOW, _NO_SUCH_CALL, _NO_SUCH_FAMILY, _ALLOW)]
    family = [_instruction(_LOAD_WORD, 0, 0, _FIRST_ARGUMENT_OFFSET)]
    # Past the tests that follow and the return that refuses a family.
    family += [_instruction(_JUMP_IF_EQUAL, len(families) - i, 0, number) for i, number in enumerate(families)]
    numbers = [_instruction(_LOAD_WORD, 0, 0, _NUMBER_OFFSET)]
    left = len(judged) + len(refused)
    for number in (*refused, *judged):
        left -= 1
        # Past the tests that follow and the return that allows; a call that is judged past the one that refuses, too.
        numbers.append(_instruction(_JUMP_IF_EQUAL, left + (1 if number in refused else 2), 0, number))
    return [*numbers, ends[0], ends[1], *family, ends[2], ends[3]]


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
