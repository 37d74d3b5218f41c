"""Makes the view of a launch in a mount namespace of its own: covers, exposures, fresh ``/proc``, private memory files.

Every path was judged before; each is opened again here, without following links, and must still be the same file:
a path that was replaced, or vanished, ends the launch. Everything is done by descriptor, so that nothing can be
exchanged between the check and the mount.
"""

from __future__ import annotations

import errno
import os

from runner_e2e import kernel
from runner_e2e.sandbox import superuser
from runner_e2e.sandbox.answers import lstat, note, read_bytes
from runner_e2e.sandbox.view import ancestors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner_e2e.sandbox.plan import Plan, Step

__all__ = [
    "ChangedError",
    "UnavailableError",
    "furnish",
    "is_refusal",
    "note_view",
    "owners",
    "ownership_maps",
    "remedy",
]

_PLAIN = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
_INERT = _PLAIN | kernel.MOUNT_ATTR_NOEXEC
# Nobody lists a cover, not its owner either; names beneath can still be reached.
_COVER = {"mode": "0111", "size": "64k", "nr_inodes": "1k"}
_ACCOUNT_FILES = ("/etc/passwd", "/etc/group")
_MEMORY_FILES = "/dev/shm"  # noqa: S108 - new file systems are laid over it, nothing is made in it
_TERMINALS = "/dev/pts"
# Roles for which nothing has to be kept of what stands at their path before anything is covered.
_MADE = frozenset({"hide", "home", "link", "pin"})
_SIGKILL = 9
_LACKING = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})
_MOST_NAMESPACES = "/proc/sys/user/max_user_namespaces"
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class ChangedError(Exception):
    """A path is no longer what it was when the policy was checked."""


class UnavailableError(Exception):
    """The host refuses a layer; the launcher may try a way that does without it."""

    def __init__(self, layer: str, error: OSError) -> None:
        self.layer = layer
        self.why = error.strerror if isinstance(error.strerror, str) else str(error)
        super().__init__(self.why)


def is_refusal(error: OSError) -> bool:
    """Whether the host refuses something, and does not only lack room for it now.

    For want of room a launch fails: else who uses it up, be it an agent, would get the next one a weaker sandbox.
    """
    return error.errno not in _LACKING or (error.errno == errno.ENOSPC and _allows_no_namespaces())


def _allows_no_namespaces() -> bool:
    """Whether ordinary users may make no user namespace at all, which the kernel answers as if all were in use."""
    try:
        return int(read_bytes(_MOST_NAMESPACES)) == 0
    except (OSError, ValueError):
        return False


def remedy(error: BaseException) -> str:
    """What helps where the host lacks room; empty for other errors."""
    if not isinstance(error, OSError) or is_refusal(error):
        return ""
    if error.errno == errno.ENOSPC:
        limits = "on namespaces and mounts (sysctl user.max_user_namespaces, fs.mount-max)"
        return f"end other sandboxes, raise the limits {limits}, or do without the layer mounts"
    return "raise the limit on open files (ulimit -n)" if error.errno == errno.EMFILE else "end other processes"


class _OwnershipError(OSError):
    """A file system cannot show its files as another user's."""


def furnish(plan: Plan, maps: Mapping[tuple[int, int], int]) -> None:
    """Makes everything that the agent of *plan* sees, in the mount namespace of this process, which must be new.

    *maps*: owner and group on disk -> user namespace that maps them to the agent. Raises :class:`ChangedError` for a
    path that changed and :class:`UnavailableError` where the host refuses.
    """
    try:
        layer = "mounts"
        _make_view(plan, maps)
        if plan.mapped:
            covered = bool(plan.namespaces & kernel.CLONE_NEWIPC)
            _add_account(plan.user, plan.group, dict(plan.environment).get("HOME", "/"), keep=covered)
        if plan.terminal or not plan.mapped:
            _mount_terminals(plan)
        if plan.namespaces & kernel.CLONE_NEWIPC:
            layer = "ipc"
            _mount_memory_files(plan)
        if plan.namespaces & kernel.CLONE_NEWPID:
            layer = "pids"
            _mount_processes()
        layer = "mounts"
        if superuser.stays_root(plan):
            superuser.hold_off()
    except OSError as error:
        if not is_refusal(error):
            raise
        raise UnavailableError("identity" if isinstance(error, _OwnershipError) else layer, error) from error


def _make_view(plan: Plan, maps: Mapping[tuple[int, int], int]) -> None:
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    view = _View(plan, maps)
    try:
        view.make()
    finally:
        view.close()


class _View:
    """A view in the making: which descriptors stand for what was there before, and for the covers that are laid."""

    def __init__(self, plan: Plan, maps: Mapping[tuple[int, int], int]) -> None:
        self.plan = plan
        self.steps = {step.path: step for step in plan.steps}
        self.captured: dict[str, int] = {}
        self.covers: dict[str, int] = {}  # directories of ours in which mount points can be made
        self.plain = -1  # an empty directory, for what has nothing to show beneath
        self.maps = maps

    def make(self) -> None:
        """Carries out every step."""
        for step in self.plan.steps:
            if step.role not in _MADE:
                self.captured[step.path] = _capture(step, self.maps)
        above = {path for step in self.plan.steps for path in ancestors(step.path)}
        for step in self.plan.steps:
            target = self._target(step)
            if target < 0:
                continue
            try:
                self._carry_out(step, target, plain=step.path not in above)
            finally:
                os.close(target)
        for path, cover in self.covers.items():
            if self.steps[path].hidden:
                kernel.set_mount_attributes(cover, add=kernel.MOUNT_ATTR_RDONLY)

    def close(self) -> None:
        """Closes every descriptor."""
        for descriptor in (*self.captured.values(), *self.covers.values(), self.plain):
            if descriptor >= 0:
                os.close(descriptor)

    def _carry_out(self, step: Step, target: int, *, plain: bool) -> None:
        if step.role == "home":
            self.covers[step.path] = _attach_new("tmpfs", self._home_options(), _PLAIN, target)
        elif step.role == "pin":
            _pin(target)
        elif step.role != "hide":
            kernel.move_mount(self.captured[step.path], target)
        elif not step.directory:
            _cover_file(target)
        elif plain:
            self._cover_plainly(target)
        else:
            self.covers[step.path] = _attach_new("tmpfs", _COVER, _INERT, target)

    def _home_options(self) -> dict[str, str]:
        options = {"mode": "0700", **_size(self.plan)}
        if self.plan.user < 0:
            return options
        return {**options, "uid": str(self.plan.user), "gid": str(self.plan.group)}

    def _cover_plainly(self, target: int) -> None:
        """Lays the same empty directory over every hidden one that has nothing to show beneath."""
        if self.plain < 0:
            self.plain = _attach_new("tmpfs", _COVER, _INERT | kernel.MOUNT_ATTR_RDONLY, target)
            return
        tree = kernel.clone_tree("", recursive=False, directory=self.plain)
        try:
            kernel.move_mount(tree, target)
        finally:
            os.close(tree)

    def _target(self, step: Step) -> int:
        """The descriptor of where *step* is mounted, made where the nearest step above is an empty directory of ours.

        -1 where nothing is left to mount: a link, which is made here.
        """
        nearest = next((path for path in reversed(ancestors(step.path)) if self._stands(path)), "")
        if nearest not in self.covers:
            try:
                found = os.open(step.path, _PATH)
            except FileNotFoundError as error:
                raise ChangedError(f"{step.path} vanished during the launch") from error
            _compare(found, step)
            return found
        name = step.path[len(nearest) + 1 :]
        return _make_mount_point(step, self.covers[nearest], name, self.steps[nearest].role)

    def _stands(self, path: str) -> bool:
        return path in self.steps and self.steps[path].role != "link"


def _capture(step: Step, maps: Mapping[tuple[int, int], int]) -> int:
    """A detached copy of what stands at the path of *step* now, before anything is covered."""
    try:
        tree = kernel.clone_tree(step.path)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise ChangedError(f"{step.path} vanished during the launch") from error
        raise
    _compare(tree, step)
    if step.role == "lock":
        kernel.set_mount_attributes(tree, add=kernel.MOUNT_ATTR_RDONLY | _PLAIN, recursive=True)
    elif step.role in {"expose", "own"} and (step.user, step.group) in maps:
        namespace = maps[step.user, step.group]
        attributes = kernel.MOUNT_ATTR_IDMAP | _PLAIN
        try:
            kernel.set_mount_attributes(tree, add=attributes, user_namespace=namespace)
        except OSError as error:
            raise _OwnershipError(
                error.errno, f"files in {step.path} cannot be shown as the agent's: {error}"
            ) from error
    return tree


def _compare(descriptor: int, step: Step) -> None:
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino) != (step.device, step.inode):
        raise ChangedError(f"{step.path} was replaced during the launch")


def _make_mount_point(step: Step, cover: int, name: str, role: str) -> int:
    mode = 0o755 if role == "home" else 0o111
    *parents, last = name.split("/")
    current = os.dup(cover)
    try:
        for parent in parents:
            current = _enter(current, parent, mode)
        if step.role == "link":
            os.symlink(step.target, last, dir_fd=current)
            return -1
        if step.directory:
            _make(lambda: os.mkdir(last, mode, dir_fd=current))
        else:
            _make(lambda: os.close(os.open(last, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444, dir_fd=current)))
        return os.open(last, _PATH, dir_fd=current)
    finally:
        os.close(current)


def _enter(directory: int, name: str, mode: int) -> int:
    try:
        _make(lambda: os.mkdir(name, mode, dir_fd=directory))
        return os.open(name, _PATH | os.O_DIRECTORY, dir_fd=directory)
    finally:
        os.close(directory)


def _make(action: object) -> None:
    try:
        action()  # type: ignore[operator]
    except FileExistsError:
        return


def _attach_new(kind: str, options: dict[str, str], attributes: int, target: int) -> int:
    tree = kernel.new_file_system(kind, options, attributes)
    kernel.move_mount(tree, target)
    return tree


def _cover_file(target: int) -> None:
    """Lays a device that cannot be opened over a file, a socket or a pipe."""
    tree = kernel.clone_tree("/dev/null", recursive=False)
    try:
        kernel.set_mount_attributes(tree, add=_INERT | kernel.MOUNT_ATTR_RDONLY)
        kernel.move_mount(tree, target)
    finally:
        os.close(tree)


def _pin(target: int) -> None:
    """Mounts what is open as *target* on itself, with the attributes it is seen with."""
    tree = kernel.clone_tree("", directory=target)
    try:
        kernel.move_mount(tree, target)
    finally:
        os.close(tree)


def _mount_over(kind: str, options: dict[str, str], attributes: int, path: str) -> None:
    target = os.open(path, _PATH | os.O_DIRECTORY)
    try:
        os.close(_attach_new(kind, options, attributes, target))
    finally:
        os.close(target)


def _add_account(user: int, group: int, home: str, *, keep: bool) -> None:
    """Gives *user* and *group* a name inside: many programs stop when their user has none.

    Needs ``/dev/shm`` as a place to mount on. *keep*: something else covers it afterwards, so nothing is unmounted,
    which the kernel does slowly.
    """
    try:
        stage = os.open(_MEMORY_FILES, _PATH | os.O_DIRECTORY)
    except OSError:
        return
    try:
        tree = _attach_new("tmpfs", {"mode": "0755"}, _INERT, stage)
        try:
            rest = f":x:{user}:{group}:agent:{home}:/bin/sh"
            _replace_account_file(tree, "passwd", os.fsencode(rest), user)
            _replace_account_file(tree, "group", os.fsencode(f":x:{group}:"), group)
        finally:
            os.close(tree)
            if not keep:
                kernel.umount(_MEMORY_FILES, kernel.MNT_DETACH)
    finally:
        os.close(stage)


def _replace_account_file(stage: int, kind: str, rest: bytes, number: int) -> None:
    """Lays a copy with one more entry over ``/etc/passwd`` or ``/etc/group``, if *number* has none there."""
    try:
        with open(f"/etc/{kind}", "rb") as file:
            text = file.read()
    except OSError:
        return
    entries = [entry.split(b":") for entry in text.splitlines()]
    if any(len(entry) > 2 and entry[2] == b"%d" % number for entry in entries):
        return
    name = b"agent%d" % number if any(entry[0] == b"agent" for entry in entries) else b"agent"
    made = os.open(kind, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=stage)
    with open(made, "wb", buffering=0) as file:
        file.write(text + (b"" if text.endswith(b"\n") else b"\n") + name + rest + b"\n")
    tree = kernel.clone_tree(f"{_MEMORY_FILES}/{kind}")
    target = os.open(f"/etc/{kind}", _PATH)
    try:
        kernel.set_mount_attributes(tree, add=_INERT | kernel.MOUNT_ATTR_RDONLY)
        kernel.move_mount(tree, target)
    finally:
        os.close(tree)
        os.close(target)


def _mount_processes() -> None:
    """Lays a ``/proc`` of this pid namespace over the old one; processes that cannot be traced are not in it."""
    try:
        _mount_over("proc", {"hidepid": "ptraceable"}, _INERT, "/proc")
    except OSError as error:
        if error.errno != errno.EINVAL:  # before Linux 5.8 the option is a number that means less
            raise
        _mount_over("proc", {}, _INERT, "/proc")


def _size(plan: Plan) -> dict[str, str]:
    """The options of a file system in memory that the agent writes in."""
    return {"size": str(plan.scratch)} if plan.scratch else {}


def _mount_terminals(plan: Plan) -> None:
    """Lays a file system of its own over the pseudo terminals: those of the launcher's user are the agent's to open."""
    if os.path.isdir(_TERMINALS):
        options = {"ptmxmode": "0666", "mode": "0620"}
        if plan.mapped:
            options = {**options, "uid": str(plan.user), "gid": str(plan.group)}
        _mount_over("devpts", options, kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NOEXEC, _TERMINALS)


def _mount_memory_files(plan: Plan) -> None:
    """Lays empty file systems over what System V and POSIX shared memory and queues are seen through."""
    for path, kind, options in (
        (_MEMORY_FILES, "tmpfs", {"mode": "1777", **_size(plan)}),
        ("/dev/mqueue", "mqueue", {}),
    ):
        if os.path.isdir(path):
            _mount_over(kind, options, _INERT if kind == "mqueue" else _PLAIN, path)


def note_view(plan: Plan) -> None:
    """Asks the machine for all that :func:`furnish` finds there, for the answers to be remembered."""
    for step in plan.steps:
        note(lstat, step.path)
    for path in _ACCOUNT_FILES if plan.mapped else ():  # the view holds copies
        note(read_bytes, path)


def owners(plan: Plan) -> tuple[tuple[int, int], ...]:
    """Owner and group of everything that *plan* gives the agent as its own and that is not its own already."""
    if not plan.mapped:
        return ()
    found = {(step.user, step.group) for step in plan.steps if step.role in {"expose", "own"}}
    return tuple(sorted(found - {(plan.user, plan.group)}))


def ownership_maps(wanted: Sequence[tuple[int, int]], *, agent: tuple[int, int]) -> dict[tuple[int, int], int]:
    """For each of *wanted* (owner and group) a user namespace that shows their files as those of *agent*."""
    maps: dict[tuple[int, int], int] = {}
    try:
        for user, group in wanted:
            maps[user, group] = _map(user=(user, agent[0]), group=(group, agent[1]))
    except BaseException:
        for descriptor in maps.values():
            os.close(descriptor)
        raise
    return maps


def _map(*, user: tuple[int, int], group: tuple[int, int]) -> int:
    """A descriptor of a new user namespace with one user and one group: (id on disk, id shown)."""
    mask = kernel.block_signals()
    helper = kernel.start_idle_process(kernel.CLONE_NEWUSER)
    try:
        for name, (on_disk, shown) in (("uid_map", user), ("gid_map", group)):
            with open(f"/proc/{helper}/{name}", "wb", buffering=0) as file:
                file.write(b"%d %d 1" % (on_disk, shown))
        return os.open(f"/proc/{helper}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.kill(helper, _SIGKILL)
        _collect(helper)
        kernel.unblock_signals(mask)


def _collect(helper: int) -> None:
    try:
        os.waitpid(helper, 0)
    except ChildProcessError:
        return  # a service does not keep children that have ended
