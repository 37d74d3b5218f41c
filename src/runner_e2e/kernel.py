"""The system calls that Python does not offer: Landlock, mounts, namespaces, credentials, seccomp, keyrings.

The only file that imports ``ctypes``. Every function is a thin, typed wrapper: it raises :class:`OSError` with the
name of the call and decides nothing. Numbers and layouts are those of the kernel's user API (``include/uapi``);
calls from 424 on have one number on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False  # typing costs a launch more than all of this module
if TYPE_CHECKING:
    from typing import Final

__all__ = [
    "AT_EMPTY_PATH",
    "AT_RECURSIVE",
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUSER",
    "MNT_DETACH",
    "MOUNT_ATTR_IDMAP",
    "MOUNT_ATTR_NODEV",
    "MOUNT_ATTR_NOEXEC",
    "MOUNT_ATTR_NOSUID",
    "MOUNT_ATTR_RDONLY",
    "MS_BIND",
    "MS_NODEV",
    "MS_NOEXEC",
    "MS_NOSUID",
    "MS_PRIVATE",
    "MS_RDONLY",
    "MS_REC",
    "MS_REMOUNT",
    "MS_SLAVE",
    "add_path_rule",
    "address_of",
    "arguments_area",
    "block_signals",
    "clone_process",
    "clone_tree",
    "create_ruleset",
    "default_action",
    "drop_ambient_capabilities",
    "drop_bounding_capability",
    "effective_capabilities",
    "enter_namespaces",
    "file_system_magic",
    "forbid_new_privileges",
    "holds_bounding_capability",
    "ignore",
    "install_filter",
    "join_new_session_keyring",
    "landlock_abi",
    "library_call",
    "mount",
    "move_mount",
    "new_file_system",
    "overwrite",
    "overwrite_c_environment",
    "prefault",
    "restrict_self",
    "set_capabilities",
    "set_child_subreaper",
    "set_dumpable",
    "set_mount_attributes",
    "set_name",
    "set_parent_death_signal",
    "signal_descriptor",
    "start_idle_process",
    "system_call",
    "umount",
    "unblock_signals",
    "unshare",
]

CLONE_VM: Final = 0x00000100
CLONE_NEWNS: Final = 0x00020000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
MS_SLAVE: Final = 0x80000
MNT_DETACH: Final = 0x2

MOUNT_ATTR_RDONLY: Final = 0x1
MOUNT_ATTR_NOSUID: Final = 0x2
MOUNT_ATTR_NODEV: Final = 0x4
MOUNT_ATTR_NOEXEC: Final = 0x8
MOUNT_ATTR_IDMAP: Final = 0x100000

AT_FDCWD: Final = -100
AT_EMPTY_PATH: Final = 0x1000
AT_RECURSIVE: Final = 0x8000
OPEN_TREE_CLONE: Final = 0x1
OPEN_TREE_CLOEXEC: Final = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH: Final = 0x4
MOVE_MOUNT_T_EMPTY_PATH: Final = 0x40

SYS_OPEN_TREE: Final = 428
SYS_MOVE_MOUNT: Final = 429
SYS_FSOPEN: Final = 430
SYS_FSCONFIG: Final = 431
SYS_FSMOUNT: Final = 432
SYS_MOUNT_SETATTR: Final = 442
SYS_LANDLOCK_CREATE_RULESET: Final = 444
SYS_LANDLOCK_ADD_RULE: Final = 445
SYS_LANDLOCK_RESTRICT_SELF: Final = 446

# Calls older than the common numbering: machine -> number.
_OLD_CALLS: Final = {
    "x86_64": {"clone": 56, "keyctl": 250, "capset": 126, "capget": 125, "seccomp": 317},
    "aarch64": {"clone": 220, "keyctl": 219, "capset": 91, "capget": 90, "seccomp": 277},
}

FSCONFIG_SET_STRING: Final = 1
FSCONFIG_CMD_CREATE: Final = 6
CLOSE_ON_EXEC: Final = 1  # FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC

LANDLOCK_CREATE_RULESET_VERSION: Final = 1
LANDLOCK_RULE_PATH_BENEATH: Final = 1

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_NAME: Final = 15
PR_CAPBSET_READ: Final = 23
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
SECCOMP_SET_MODE_FILTER: Final = 1
KEYCTL_JOIN_SESSION_KEYRING: Final = 1
CAPABILITY_VERSION_3: Final = 0x20080522
SIGCHLD: Final = 17
MADV_POPULATE_WRITE: Final = 23
_STATFS_BYTES: Final = 256  # more than `struct statfs` has anywhere; its first word is f_type

# PyDLL keeps the interpreter lock during a call, so that a process made by `clone` comes back holding it.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_idle_stack = ctypes.create_string_buffer(1 << 14)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _call(number: int, what: str, *arguments: ctypes.c_long | ctypes.c_char_p | ctypes.Array[ctypes.c_char]) -> int:
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), what)


def _old_call(name: str) -> int:
    machine = os.uname().machine
    try:
        return _OLD_CALLS[machine][name]
    except KeyError:
        raise OSError(38, f"{name}: the number of this system call on {machine} is not known here") from None


def _long(value: int) -> ctypes.c_long:
    return ctypes.c_long(value)


def _prctl(what: str, option: int, *arguments: int) -> int:
    words = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(ctypes.c_int(option), *words), what)


# --- Landlock ---------------------------------------------------------------------------------------------------


def landlock_abi() -> int:
    """The Landlock ABI of the running kernel, or 0 where Landlock is missing or switched off."""
    number = _libc.syscall(_long(SYS_LANDLOCK_CREATE_RULESET), None, _long(0), _long(LANDLOCK_CREATE_RULESET_VERSION))
    return max(int(number), 0)


def create_ruleset(*, fs: int, net: int = 0, scoped: int = 0) -> int:
    """A descriptor of a new ruleset that handles these rights. A kernel refuses (E2BIG) fields it does not know."""
    attributes = struct.pack("=QQQ", fs, net, scoped)
    length = 24 if scoped else 16 if net else 8
    buffer = ctypes.create_string_buffer(attributes, 24)
    return _call(SYS_LANDLOCK_CREATE_RULESET, "landlock_create_ruleset", buffer, _long(length), _long(0))


def add_path_rule(ruleset: int, directory: int, access: int) -> None:
    """Grants *access* beneath the file or directory open as *directory* (``O_PATH`` is enough)."""
    rule = ctypes.create_string_buffer(struct.pack("=Qi", access, directory), 12)
    arguments = (_long(ruleset), _long(LANDLOCK_RULE_PATH_BENEATH), rule, _long(0))
    _call(SYS_LANDLOCK_ADD_RULE, "landlock_add_rule", *arguments)


def restrict_self(ruleset: int) -> None:
    """Puts this thread and all its future children in the domain, for good. Needs ``forbid_new_privileges``."""
    _call(SYS_LANDLOCK_RESTRICT_SELF, "landlock_restrict_self", _long(ruleset), _long(0))


# --- processes, namespaces, credentials ---------------------------------------------------------------------------


def clone_process(flags: int) -> int:
    """Forks into new namespaces in one call: the child's process id in the parent, 0 in the child.

    Only for a process with one thread: Python's own hooks around ``os.fork`` do not run.
    """
    arguments = [_long(flags | SIGCHLD), _long(0), _long(0), _long(0), _long(0)]
    return _call(_old_call("clone"), "clone", *arguments)


def start_idle_process(flags: int) -> int:
    """A child in new namespaces that only waits to be killed, for the namespaces' sake; returns its process id.

    It shares this process's memory and runs nothing but pause(2) of the C library on a stack of its own, so that
    nothing is copied. Signals must be blocked while it is there: no handler may run in it.
    """
    top = ctypes.addressof(_idle_stack) + len(_idle_stack)
    function = ctypes.cast(_libc.pause, ctypes.c_void_p)
    arguments = (function, ctypes.c_void_p(top), ctypes.c_int(flags | CLONE_VM | SIGCHLD), None)
    return _checked(_libc.clone(*arguments), "clone")


def enter_namespaces(descriptor: int, flags: int) -> None:
    """Moves this process into the namespace open as *descriptor*, or those of the process it is a pidfd of."""
    _checked(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(flags)), "setns")


def unshare(flags: int) -> None:
    """Moves this process into new namespaces (a pid namespace: its next children)."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def forbid_new_privileges() -> None:
    """From here on no exec gains privileges: set-uid bits and file capabilities do nothing."""
    _prctl("prctl(PR_SET_NO_NEW_PRIVS)", PR_SET_NO_NEW_PRIVS, 1)


def set_dumpable(*, dumpable: bool) -> None:
    """Whether other processes of the same user may trace this one and read its ``/proc`` files."""
    _prctl("prctl(PR_SET_DUMPABLE)", PR_SET_DUMPABLE, int(dumpable))


def set_parent_death_signal(signal: int) -> None:
    """The signal that comes when the parent thread ends. Changing credentials clears it."""
    _prctl("prctl(PR_SET_PDEATHSIG)", PR_SET_PDEATHSIG, signal)


def set_child_subreaper() -> None:
    """Makes orphaned descendants children of this process."""
    _prctl("prctl(PR_SET_CHILD_SUBREAPER)", PR_SET_CHILD_SUBREAPER, 1)


def set_name(name: str) -> None:
    """Sets the name of this thread (at most 15 bytes)."""
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _checked(_libc.prctl(ctypes.c_int(PR_SET_NAME), buffer, _long(0), _long(0), _long(0)), "prctl(PR_SET_NAME)")


def holds_bounding_capability(capability: int) -> bool:
    """Whether the bounding set still has *capability*."""
    return _prctl("prctl(PR_CAPBSET_READ)", PR_CAPBSET_READ, capability) == 1


def drop_bounding_capability(capability: int) -> None:
    """Removes one capability from the bounding set; EINVAL for one the kernel does not know."""
    _prctl("prctl(PR_CAPBSET_DROP)", PR_CAPBSET_DROP, capability)


def drop_ambient_capabilities() -> None:
    """Empties the ambient set."""
    _prctl("prctl(PR_CAP_AMBIENT)", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)


def effective_capabilities() -> int:
    """The effective capabilities of this thread as a bit set."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION_3, 0), 8)
    data = ctypes.create_string_buffer(24)
    _call(_old_call("capget"), "capget", header, data)
    low, _, _, high, _, _ = struct.unpack("=6I", data.raw)
    return int(low) | int(high) << 32


def set_capabilities(*, effective: int = 0, permitted: int = 0, inheritable: int = 0) -> None:
    """Sets the three capability sets of this thread, given as bit sets."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION_3, 0), 8)
    sets = (effective, permitted, inheritable)
    words = [value >> shift & 0xFFFFFFFF for shift in (0, 32) for value in sets]
    data = ctypes.create_string_buffer(struct.pack("=6I", *words), 24)
    _call(_old_call("capset"), "capset", header, data)


def join_new_session_keyring() -> None:
    """Gives this process a new, empty, anonymous session keyring."""
    _call(_old_call("keyctl"), "keyctl", _long(KEYCTL_JOIN_SESSION_KEYRING), _long(0))


def install_filter(program: bytes) -> None:
    """Installs a seccomp filter: *program* is an array of ``struct sock_filter`` (8 bytes an instruction)."""
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog { unsigned short len; struct sock_filter *filter; }, with the padding of a 64-bit machine
    header = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(instructions))
    arguments = (_long(SECCOMP_SET_MODE_FILTER), _long(0), ctypes.create_string_buffer(header, 16))
    _call(_old_call("seccomp"), "seccomp", *arguments)


# --- signals (the signal module costs a launch the import of enum) ---------------------------------------------------

_SIGNAL_SET_BYTES: Final = 128
_SIG_SETMASK: Final = 2


def block_signals() -> bytes:
    """Blocks every signal that can be; returns the former mask for :func:`unblock_signals`."""
    every = ctypes.create_string_buffer(b"\xff" * _SIGNAL_SET_BYTES, _SIGNAL_SET_BYTES)
    former = ctypes.create_string_buffer(_SIGNAL_SET_BYTES)
    _checked(_libc.sigprocmask(ctypes.c_int(_SIG_SETMASK), every, former), "sigprocmask")
    return former.raw


def unblock_signals(mask: bytes) -> None:
    """Sets the signal mask to *mask*."""
    buffer = ctypes.create_string_buffer(mask, _SIGNAL_SET_BYTES)
    _checked(_libc.sigprocmask(ctypes.c_int(_SIG_SETMASK), buffer, None), "sigprocmask")


def signal_descriptor() -> int:
    """A descriptor that delivers every blocked signal as 128 bytes: number, errno and code come first."""
    every = ctypes.create_string_buffer(b"\xff" * _SIGNAL_SET_BYTES, _SIGNAL_SET_BYTES)
    return _checked(_libc.signalfd(ctypes.c_int(-1), every, ctypes.c_int(os.O_CLOEXEC | os.O_NONBLOCK)), "signalfd")


def default_action(signal: int) -> None:
    """Gives *signal* its default action: Python ignores SIGPIPE and SIGXFSZ, and an exec would pass that on."""
    _libc.signal(ctypes.c_int(signal), None)


def ignore(signal: int) -> None:
    """Ignores *signal*; ended children of a process that ignores SIGCHLD vanish by themselves."""
    _libc.signal(ctypes.c_int(signal), ctypes.c_void_p(1))


# --- mounts -------------------------------------------------------------------------------------------------------


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Makes or changes a mount; follows a symbolic link at *target*."""
    words = [os.fsencode(source), os.fsencode(target), os.fsencode(kind)]
    result = _libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options) or None)
    _checked(result, f"mount({kind or 'flags'}) on {target}")


def umount(target: str, flags: int = 0) -> None:
    """Unmounts what lies at *target* (umount2(2))."""
    _checked(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), f"umount of {target}")


def new_file_system(kind: str, options: dict[str, str], attributes: int = 0) -> int:
    """A descriptor of a new, detached mount of file system *kind* (tmpfs, proc, mqueue). Needs Linux 5.2."""
    null, zero = ctypes.c_char_p(None), _long(0)
    name = ctypes.c_char_p(kind.encode())
    context = _call(SYS_FSOPEN, f"fsopen({kind})", name, _long(CLOSE_ON_EXEC))
    try:
        for key, value in options.items():
            pair = ctypes.c_char_p(key.encode()), ctypes.c_char_p(value.encode())
            _call(SYS_FSCONFIG, f"fsconfig({kind}, {key})", _long(context), _long(FSCONFIG_SET_STRING), *pair, zero)
        create = _long(FSCONFIG_CMD_CREATE)
        _call(SYS_FSCONFIG, f"fsconfig({kind}, create)", _long(context), create, null, null, zero)
        return _call(SYS_FSMOUNT, f"fsmount({kind})", _long(context), _long(CLOSE_ON_EXEC), _long(attributes))
    finally:
        os.close(context)


def clone_tree(path: str, *, recursive: bool = True, directory: int = AT_FDCWD) -> int:
    """A descriptor of a detached copy of the mounts at *path* (``""``: at *directory* itself). Needs Linux 5.2."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (AT_RECURSIVE if recursive else 0) | (0 if path else AT_EMPTY_PATH)
    name = ctypes.c_char_p(os.fsencode(path))
    return _call(SYS_OPEN_TREE, f"open_tree of {path or directory}", _long(directory), name, _long(flags))


def move_mount(tree: int, target: int) -> None:
    """Attaches the detached mounts open as *tree* at the file or directory open as *target*."""
    flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
    empty = ctypes.c_char_p(b"")
    _call(SYS_MOVE_MOUNT, "move_mount", _long(tree), empty, _long(target), empty, _long(flags))


def set_mount_attributes(
    tree: int, *, add: int = 0, remove: int = 0, recursive: bool = False, user_namespace: int = 0
) -> None:
    """Changes the attributes of the mount (or all mounts below it) open as *tree*. Needs Linux 5.12.

    *user_namespace* is a descriptor of the namespace whose id map is used with ``MOUNT_ATTR_IDMAP``.
    """
    attributes = ctypes.create_string_buffer(struct.pack("=QQQQ", add, remove, 0, user_namespace), 32)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0)
    arguments = (_long(tree), ctypes.c_char_p(b""), _long(flags), attributes, _long(32))
    _call(SYS_MOUNT_SETATTR, "mount_setattr", *arguments)


def file_system_magic(descriptor: int) -> int:
    """The number that names the type of the file system of an open file (``f_type`` of fstatfs(2))."""
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    _checked(_libc.fstatfs(ctypes.c_int(descriptor), buffer), "fstatfs")
    return int(struct.unpack_from("@L", buffer)[0])


# --- the memory of this process -----------------------------------------------------------------------------------


def arguments_area() -> tuple[int, int]:
    """Start address and length in bytes of what ``/proc/self/cmdline`` shows (fields 48 and 49 of ``stat``)."""
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - no pathlib in the process that holds the walls
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    return start, end - start


def prefault() -> None:
    """Takes now the page faults that this process would have later, where it writes what it shares with its parent.

    Does nothing without ``/proc`` or before Linux 5.14.
    """
    try:
        with open("/proc/self/maps", "rb") as file:  # noqa: PTH123 - as above
            areas = [line.split(None, 2)[:2] for line in file]
    except OSError:
        return
    for area, rights in areas:
        start, end = (int(number, 16) for number in area.split(b"-"))
        if rights == b"rw-p":
            _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), ctypes.c_int(MADV_POPULATE_WRITE))


def overwrite(address: int, content: bytes) -> None:
    """Writes *content* at *address* in the memory of this process."""
    ctypes.memmove(address, content, len(content))


def overwrite_c_environment(needle: bytes) -> int:
    """Zeroes every ``NAME=VALUE`` string of the C library's environment that contains *needle*; returns how many.

    For strings that ``setenv`` put on the heap after the start: the C library never frees them.
    """
    entries = ctypes.POINTER(ctypes.c_void_p).in_dll(_libc, "environ")
    count = index = 0
    while entries and (address := entries[index]):
        text = ctypes.string_at(address)
        if needle in text:
            ctypes.memset(address, 0, len(text))
            count += 1
        index += 1
    return count


# --- any other call -----------------------------------------------------------------------------------------------


def library_call(name: str, *arguments: int | bytes | bytearray | None, wide: bool = False) -> int:
    """Calls the C library's *name*; a ``bytearray`` is written to in place. Raises :class:`OSError` for -1.

    *wide*: it returns a ``long`` or a pointer, not an ``int``.
    """
    function = getattr(_libc, name)
    function.restype = ctypes.c_long if wide else ctypes.c_int
    return _checked(function(*map(_argument, arguments)), name)


def system_call(number: int, *arguments: int | bytes | bytearray | None) -> int:
    """Makes the system call *number*; as :func:`library_call` otherwise."""
    return _checked(_libc.syscall(_long(number), *map(_argument, arguments)), f"system call {number}")


def _argument(value: int | bytes | bytearray | None) -> object:
    if isinstance(value, bytearray):
        return (ctypes.c_char * len(value)).from_buffer(value)
    return _long(value) if isinstance(value, int) else ctypes.c_char_p(value)


def address_of(buffer: bytearray) -> int:
    """Where *buffer* lies in the memory of this process, for as long as it keeps its length."""
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))
