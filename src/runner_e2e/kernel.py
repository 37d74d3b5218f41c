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
    from collections.abc import Callable
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
    "io_priority",
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
    "x86_64": {"clone": 56, "keyctl": 250, "capset": 126, "capget": 125, "seccomp": 317, "ioprio_get": 252},
    "aarch64": {"clone": 220, "keyctl": 219, "capset": 91, "capget": 90, "seccomp": 277, "ioprio_get": 31},
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
IOPRIO_WHO_PROCESS: Final = 1
CAPABILITY_VERSION_3: Final = 0x20080522
SIGCHLD: Final = 17
MADV_POPULATE_WRITE: Final = 23
_STATFS_BYTES: Final = 256  # more than `struct statfs` has anywhere; its first word is f_type

# PyDLL keeps the interpreter lock during a call, so that a process made by `clone` comes back holding it.
_libc = ctypes.PyDLL(None, use_errno=True)
_idle_stack = ctypes.create_string_buffer(1 << 14)

_INT, _LONG, _SIZE, _TEXT, _ADDRESS = ctypes.c_int, ctypes.c_long, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _function(name: str, *types: type, result: type = _INT) -> Callable[..., int]:
    """The C library's *name* with its types declared: converting arguments is then no work for Python."""
    function = _libc[name]
    function.argtypes, function.restype = types, result
    return function


def _system_call(*types: type) -> Callable[..., int]:
    """``syscall(2)`` for calls with such arguments: takes the number, then them."""
    return _function("syscall", _LONG, *types, result=_LONG)


_call_longs = _system_call(_LONG, _LONG, _LONG, _LONG, _LONG)
_call_texts = _system_call(_TEXT, _TEXT)
_create_ruleset = _system_call(_TEXT, _LONG, _LONG)
_add_rule = _system_call(_LONG, _LONG, _TEXT, _LONG)
_install_filter = _system_call(_LONG, _LONG, _TEXT)
_open_tree = _system_call(_LONG, _TEXT, _LONG)
_move_mount = _system_call(_LONG, _TEXT, _LONG, _TEXT, _LONG)
_fsopen = _system_call(_TEXT, _LONG)
_fsconfig = _system_call(_LONG, _LONG, _TEXT, _TEXT, _LONG)
_mount_setattr = _system_call(_LONG, _TEXT, _LONG, _TEXT, _LONG)
_prctl_longs = _function("prctl", _INT, _LONG, _LONG, _LONG, _LONG)
_mount = _function("mount", _TEXT, _TEXT, _TEXT, _LONG, _TEXT)
_umount = _function("umount2", _TEXT, _INT)
_madvise = _function("madvise", _ADDRESS, _SIZE, _INT)
_any_system_call = _libc["syscall"]
_any_system_call.restype = _LONG


def _old_call(name: str) -> int:
    machine = os.uname().machine
    try:
        return _OLD_CALLS[machine][name]
    except KeyError:
        raise OSError(38, f"{name}: the number of this system call on {machine} is not known here") from None


def _call(number: int, what: str, *arguments: int) -> int:
    """A system call that takes up to five integers."""
    return _checked(_call_longs(number, *(*arguments, 0, 0, 0, 0, 0)[:5]), what)


def _prctl(what: str, option: int, *arguments: int) -> int:
    return _checked(_prctl_longs(option, *(*arguments, 0, 0, 0, 0)[:4]), what)


# --- Landlock ---------------------------------------------------------------------------------------------------


def landlock_abi() -> int:
    """The Landlock ABI of the running kernel, or 0 where Landlock is missing or switched off."""
    return max(_create_ruleset(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION), 0)


def create_ruleset(*, fs: int, net: int = 0, scoped: int = 0) -> int:
    """A descriptor of a new ruleset that handles these rights. A kernel refuses (E2BIG) fields it does not know."""
    attributes = struct.pack("=QQQ", fs, net, scoped)
    length = 24 if scoped else 16 if net else 8
    result = _create_ruleset(SYS_LANDLOCK_CREATE_RULESET, attributes, length, 0)
    return _checked(result, "landlock_create_ruleset")


def add_path_rule(ruleset: int, directory: int, access: int) -> None:
    """Grants *access* beneath the file or directory open as *directory* (``O_PATH`` is enough)."""
    rule = struct.pack("=Qi", access, directory)
    _checked(_add_rule(SYS_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0), "landlock_add_rule")


def restrict_self(ruleset: int) -> None:
    """Puts this thread and all its future children in the domain, for good. Needs ``forbid_new_privileges``."""
    _call(SYS_LANDLOCK_RESTRICT_SELF, "landlock_restrict_self", ruleset, 0)


# --- processes, namespaces, credentials ---------------------------------------------------------------------------


def clone_process(flags: int) -> int:
    """Forks into new namespaces in one call: the child's process id in the parent, 0 in the child.

    Only for a process with one thread: Python's own hooks around ``os.fork`` do not run.
    """
    return _call(_old_call("clone"), "clone", flags | SIGCHLD)


_IDLE_SECONDS: Final = 60


def start_idle_process(flags: int) -> int:
    """A child in new namespaces that only waits to be killed, for the namespaces' sake; returns its process id.

    It shares this process's memory and runs nothing but sleep(3) of the C library on a stack of its own, so that
    nothing is copied. Signals must be blocked while it is there: no handler may run in it. It ends after a minute,
    should this process be killed in the meantime: it holds all that this one has open.
    """
    top = ctypes.addressof(_idle_stack) + len(_idle_stack)
    function = ctypes.cast(_libc.sleep, ctypes.c_void_p)
    flags |= CLONE_VM | SIGCHLD
    arguments = (function, ctypes.c_void_p(top), ctypes.c_int(flags), ctypes.c_void_p(_IDLE_SECONDS))
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


def io_priority(process: int) -> int:
    """Class and level of the input and output of *process*, as ioprio_get(2) packs them."""
    return _call(_old_call("ioprio_get"), "ioprio_get", IOPRIO_WHO_PROCESS, process)


def set_name(name: str) -> None:
    """Sets the name of this thread (at most 15 bytes)."""
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _prctl("prctl(PR_SET_NAME)", PR_SET_NAME, ctypes.addressof(buffer))


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
    data = ctypes.create_string_buffer(24)
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    _checked(_call_texts(_old_call("capget"), header, data), "capget")
    low, _, _, high, _, _ = struct.unpack("=6I", data.raw)
    return int(low) | int(high) << 32


def set_capabilities(*, effective: int = 0, permitted: int = 0, inheritable: int = 0) -> None:
    """Sets the three capability sets of this thread, given as bit sets."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    sets = (effective, permitted, inheritable)
    words = [value >> shift & 0xFFFFFFFF for shift in (0, 32) for value in sets]
    _checked(_call_texts(_old_call("capset"), header, struct.pack("=6I", *words)), "capset")


def join_new_session_keyring() -> None:
    """Gives this process a new, empty, anonymous session keyring."""
    _call(_old_call("keyctl"), "keyctl", KEYCTL_JOIN_SESSION_KEYRING, 0)


def install_filter(program: bytes) -> None:
    """Installs a seccomp filter: *program* is an array of ``struct sock_filter`` (8 bytes an instruction)."""
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog { unsigned short len; struct sock_filter *filter; }, with the padding of a 64-bit machine
    header = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(instructions))
    _checked(_install_filter(_old_call("seccomp"), SECCOMP_SET_MODE_FILTER, 0, header), "seccomp")


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
    result = _mount(*words, flags, os.fsencode(options) or None)
    _checked(result, f"mount({kind or 'flags'}) on {target}")


def umount(target: str, flags: int = 0) -> None:
    """Unmounts what lies at *target* (umount2(2))."""
    _checked(_umount(os.fsencode(target), flags), f"umount of {target}")


def new_file_system(kind: str, options: dict[str, str], attributes: int = 0) -> int:
    """A descriptor of a new, detached mount of file system *kind* (tmpfs, proc, mqueue). Needs Linux 5.2."""
    context = _checked(_fsopen(SYS_FSOPEN, kind.encode(), CLOSE_ON_EXEC), f"fsopen({kind})")
    try:
        for key, value in options.items():
            result = _fsconfig(SYS_FSCONFIG, context, FSCONFIG_SET_STRING, key.encode(), value.encode(), 0)
            _checked(result, f"fsconfig({kind}, {key})")
        _checked(_fsconfig(SYS_FSCONFIG, context, FSCONFIG_CMD_CREATE, None, None, 0), f"fsconfig({kind}, create)")
        return _call(SYS_FSMOUNT, f"fsmount({kind})", context, CLOSE_ON_EXEC, attributes)
    finally:
        os.close(context)


def clone_tree(path: str, *, recursive: bool = True, directory: int = AT_FDCWD) -> int:
    """A descriptor of a detached copy of the mounts at *path* (``""``: at *directory* itself). Needs Linux 5.2."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (AT_RECURSIVE if recursive else 0) | (0 if path else AT_EMPTY_PATH)
    result = _open_tree(SYS_OPEN_TREE, directory, os.fsencode(path), flags)
    return _checked(result, f"open_tree of {path or directory}")


def move_mount(tree: int, target: int) -> None:
    """Attaches the detached mounts open as *tree* at the file or directory open as *target*."""
    flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
    _checked(_move_mount(SYS_MOVE_MOUNT, tree, b"", target, b"", flags), "move_mount")


def set_mount_attributes(
    tree: int, *, add: int = 0, remove: int = 0, recursive: bool = False, user_namespace: int = 0
) -> None:
    """Changes the attributes of the mount (or all mounts below it) open as *tree*. Needs Linux 5.12.

    *user_namespace* is a descriptor of the namespace whose id map is used with ``MOUNT_ATTR_IDMAP``.
    """
    attributes = struct.pack("=QQQQ", add, remove, 0, user_namespace)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0)
    result = _mount_setattr(SYS_MOUNT_SETATTR, tree, b"", flags, attributes, len(attributes))
    _checked(result, "mount_setattr")


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
            _madvise(start, end - start, MADV_POPULATE_WRITE)


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
    result = _any_system_call(_LONG(number), *map(_argument, arguments))
    return _checked(result, f"system call {number}")


def _argument(value: int | bytes | bytearray | None) -> object:
    if isinstance(value, bytearray):
        return (ctypes.c_char * len(value)).from_buffer(value)
    return _LONG(value) if isinstance(value, int) else ctypes.c_char_p(value)


def address_of(buffer: bytearray) -> int:
    """Where *buffer* lies in the memory of this process, for as long as it keeps its length."""
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))
