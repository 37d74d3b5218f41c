from __future__ import annotations

import struct

import pytest

from runner_e2e.sandbox.seccomp import LOCAL_FAMILIES, NETWORK_FAMILIES, program, socket_program

ALLOW, NO_SUCH_CALL, NO_SUCH_FAMILY = 0x7FFF0000, 0x00050026, 0x00050061
X86_64, I386, AARCH64, ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028


def evaluate(machine: str, architecture: int, number: int) -> int:
    """What the kernel's interpreter would return for one system call under the filter of keyrings."""
    return interpret(program(machine), architecture, number, 0)


def interpret(filter_: bytes, architecture: int, number: int, argument: int) -> int:
    """What the kernel's interpreter would return for one system call with this first argument."""
    code = [struct.unpack("=HBBI", filter_[at : at + 8]) for at in range(0, len(filter_), 8)]
    accumulator = at = 0
    while True:
        operation, if_true, if_false, constant = code[at]
        at += 1
        if operation == 0x20:
            accumulator = {0: number, 4: architecture, 16: argument & 0xFFFFFFFF}[constant]
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


UNIX, INET, INET6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40


@pytest.mark.parametrize(
    ("machine", "architecture", "number", "family", "local", "network"),
    [
        *[("x86_64", X86_64, 41, family, ALLOW, ALLOW) for family in (UNIX, NETLINK)],
        *[("x86_64", X86_64, 41, family, NO_SUCH_FAMILY, ALLOW) for family in (INET, INET6)],
        *[("x86_64", X86_64, 41, family, NO_SUCH_FAMILY, NO_SUCH_FAMILY) for family in (0, PACKET, VSOCK, 0xFFFFFFFF)],
        ("x86_64", X86_64, 41, 0x100000000 | UNIX, ALLOW, ALLOW),  # the kernel looks at the lower half alone
        ("x86_64", X86_64, 53, VSOCK, NO_SUCH_FAMILY, NO_SUCH_FAMILY),
        ("x86_64", X86_64, 0x40000000 | 41, VSOCK, NO_SUCH_FAMILY, NO_SUCH_FAMILY),
        ("x86_64", X86_64, 42, VSOCK, ALLOW, ALLOW),
        ("x86_64", X86_64, 425, UNIX, NO_SUCH_CALL, NO_SUCH_CALL),
        ("x86_64", X86_64, 0x40000000 | 425, UNIX, NO_SUCH_CALL, NO_SUCH_CALL),
        ("x86_64", I386, 102, UNIX, NO_SUCH_CALL, NO_SUCH_CALL),
        ("x86_64", I386, 359, INET, NO_SUCH_FAMILY, ALLOW),
        ("x86_64", I386, 41, VSOCK, ALLOW, ALLOW),
        ("x86_64", ARM, 1, UNIX, NO_SUCH_CALL, NO_SUCH_CALL),
        ("aarch64", AARCH64, 198, VSOCK, NO_SUCH_FAMILY, NO_SUCH_FAMILY),
        ("aarch64", AARCH64, 198, INET6, NO_SUCH_FAMILY, ALLOW),
        ("aarch64", ARM, 281, VSOCK, NO_SUCH_FAMILY, NO_SUCH_FAMILY),
    ],
)
def test_only_sockets_that_a_namespace_holds_back_are_left(
    machine: str, architecture: int, number: int, family: int, local: int, network: int
) -> None:
    assert interpret(socket_program(LOCAL_FAMILIES, machine), architecture, number, family) == local
    assert interpret(socket_program(NETWORK_FAMILIES, machine), architecture, number, family) == network


def test_sockets_of_an_unknown_machine_are_said_to_be_unknown() -> None:
    with pytest.raises(OSError, match="sparc"):
        socket_program(LOCAL_FAMILIES, "sparc")
