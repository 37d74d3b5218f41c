from __future__ import annotations

import struct

import pytest

from runner_e2e.sandbox.seccomp import program

ALLOW, NO_SUCH_CALL = 0x7FFF0000, 0x00050026
X86_64, I386, AARCH64, ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028


def evaluate(machine: str, architecture: int, number: int) -> int:
    """What the kernel's interpreter would return for one system call."""
    code = [struct.unpack("=HBBI", program(machine)[at : at + 8]) for at in range(0, len(program(machine)), 8)]
    accumulator = at = 0
    while True:
        operation, if_true, if_false, constant = code[at]
        at += 1
        if operation == 0x20:
            accumulator = {0: number, 4: architecture}[constant]
        elif operation == 0x15:
            at += if_true if accumulator == constant else if_false
        elif operation == 0x06:
            return int(constant)


@pytest.mark.parametrize(
    ("machine", "architecture", "number", "result"),
    [
        ("x86_64", X86_64, 250, NO_SUCH_CALL),
        ("x86_64", X86_64, 249, NO_SUCH_CALL),
        ("x86_64", X86_64, 248, NO_SUCH_CALL),
        ("x86_64", X86_64, 247, ALLOW),
        ("x86_64", X86_64, 251, ALLOW),
        ("x86_64", X86_64, 0, ALLOW),
        ("x86_64", X86_64, 0x40000000 | 250, NO_SUCH_CALL),  # the same call in x32
        ("x86_64", I386, 288, NO_SUCH_CALL),
        ("x86_64", I386, 250, ALLOW),
        ("x86_64", ARM, 1, NO_SUCH_CALL),
        ("aarch64", AARCH64, 219, NO_SUCH_CALL),
        ("aarch64", AARCH64, 216, ALLOW),
        ("aarch64", ARM, 311, NO_SUCH_CALL),
    ],
)
def test_only_the_keyring_calls_are_taken_away(machine: str, architecture: int, number: int, result: int) -> None:
    assert evaluate(machine, architecture, number) == result


def test_an_unknown_machine_is_said_to_be_unknown() -> None:
    with pytest.raises(OSError, match="sparc"):
        program("sparc")
