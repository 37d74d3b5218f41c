"""Runs a command as on a host that breaks sandboxes: ``hosts.py KIND COMMAND…``.

``no-network-admin``: the kernel refuses every change of the network, as it does without ``CAP_NET_ADMIN`` (a filter
answers EPERM to what is sent to netlink). ``no-user-ids``: user ids cannot be mapped, as with a security module that
keeps ``/proc/self/uid_map`` from being written (Landlock grants writing everywhere but in ``/proc``).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
SENDTO = {"x86_64": 44, "aarch64": 206}[platform.machine()]
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
WRITE_FILE = 1 << 1
SIZE_OF_NETLINK_ADDRESS = 12


def checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def refuse_netlink() -> None:
    load, equal, give = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | 1
    instructions = [
        (load, 0, 0, 0),  # the number of the system call
        (equal, 0, 3, SENDTO),
        (load, 0, 0, 16 + 5 * 8),  # the length of the address
        (equal, 0, 1, SIZE_OF_NETLINK_ADDRESS),
        (give, 0, 0, refuse),
        (give, 0, 0, allow),
    ]
    code = b"".join(struct.pack("HBBI", *one) for one in instructions)
    program = ctypes.create_string_buffer(code)
    header = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(program))
    checked(LIBC.prctl(PR_SET_SECCOMP, FILTER, header, 0, 0), "seccomp")


def forbid_mapping() -> None:
    handled = struct.pack("Q", WRITE_FILE)
    ruleset = checked(LIBC.syscall(CREATE_RULESET, handled, len(handled), 0), "landlock")
    for entry in Path("/").iterdir():
        if entry.name != "proc":
            path = os.open(entry, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("=Qi", WRITE_FILE, path)
            checked(LIBC.syscall(ADD_RULE, ruleset, 1, rule, 0), str(entry))
            os.close(path)
    checked(LIBC.syscall(RESTRICT_SELF, ruleset, 0), "landlock")


def main(kind: str, command: list[str]) -> None:
    checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    {"no-network-admin": refuse_netlink, "no-user-ids": forbid_mapping}[kind]()
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
