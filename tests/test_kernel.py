"""The system calls, each tried in a child of its own where it cannot be undone."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from runner_e2e import kernel

SOURCE = str(Path(kernel.__file__).parent.parent)


def child(script: str) -> str:
    """Runs *script* in a new interpreter and returns what it printed."""
    head = f"import os, sys\nsys.path.insert(0, {SOURCE!r})\nfrom runner_e2e import kernel\n"
    done = subprocess.run([sys.executable, "-I", "-c", head + script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_this_kernel_has_landlock() -> None:
    assert kernel.landlock_abi() >= 1


def test_a_failing_call_names_itself_and_its_error() -> None:
    with pytest.raises(OSError, match="landlock_restrict_self: Bad file descriptor") as caught:
        kernel.restrict_self(-1)
    assert caught.value.errno == 9
    with pytest.raises(OSError, match="umount of /no/such"):
        kernel.umount("/no/such")


def test_a_ruleset_hides_what_it_does_not_grant(tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    script = f"""
read = 1 << 3
ruleset = kernel.create_ruleset(fs=read)
kernel.add_path_rule(ruleset, os.open({str(tmp_path / "shown")!r}, os.O_PATH), read)
kernel.forbid_new_privileges()
kernel.restrict_self(ruleset)
print(os.listdir({str(tmp_path / "shown")!r}))
try:
    os.listdir({str(tmp_path)!r})
except PermissionError:
    print("denied")
"""
    assert child(script).split() == ["[]", "denied"]


def test_a_filter_refuses_a_call() -> None:
    script = """
import struct
words = struct.pack("=HBBI", 0x20, 0, 0, 0) + struct.pack("=HBBI", 0x15, 0, 1, 434)
words += struct.pack("=HBBI", 0x06, 0, 0, 0x00050000 | 95) + struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
kernel.forbid_new_privileges()
kernel.install_filter(words)
try:
    os.pidfd_open(os.getpid())
except OSError as error:
    print(error.errno)
"""
    assert child(script) == "95"


def test_clone_starts_a_process_and_reports_its_end() -> None:
    script = """
first = kernel.clone_process(0)
if first == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))
"""
    assert child(script) == "7"


def test_capabilities_are_dropped() -> None:
    script = """
kernel.drop_ambient_capabilities()
kernel.set_capabilities()
print(kernel.effective_capabilities())
"""
    assert child(script) == "0"


def test_effective_capabilities_are_those_of_proc() -> None:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    assert kernel.effective_capabilities() == int(line.split()[1], 16)


def test_arguments_can_be_overwritten() -> None:
    script = """
start, length = kernel.arguments_area()
kernel.overwrite(start, b"other".ljust(length, b"\\0"))
print(open("/proc/self/cmdline", "rb").read().strip(b"\\0"))
"""
    assert child(script) == "b'other'"


def test_blocked_signals_come_through_the_descriptor() -> None:
    script = """
mask = kernel.block_signals()
descriptor = kernel.signal_descriptor()
os.kill(os.getpid(), 15)
print(os.read(descriptor, 128)[0])
kernel.unblock_signals(mask)
"""
    assert child(script) == "15"


def test_ignored_children_vanish_and_default_actions_return() -> None:
    script = """
kernel.ignore(17)
first = os.fork()
if first == 0:
    os._exit(0)
try:
    os.waitpid(first, 0)
except ChildProcessError:
    print("gone")
kernel.default_action(13)
first = os.fork()
if first == 0:
    os.kill(os.getpid(), 13)
    os._exit(0)
"""
    assert child(script) == "gone"


def test_a_new_file_system_is_mounted_by_descriptor(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        enter = "kernel.unshare(kernel.CLONE_NEWNS)"
    else:
        enter = "kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)"
    script = f"""
try:
    {enter}
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    tree = kernel.new_file_system("tmpfs", {{"mode": "0750"}}, kernel.MOUNT_ATTR_NOEXEC)
    kernel.move_mount(tree, os.open({str(tmp_path)!r}, os.O_PATH))
    kernel.set_mount_attributes(tree, add=kernel.MOUNT_ATTR_RDONLY)
    print(oct(os.stat({str(tmp_path)!r}).st_mode & 0o777), bool(os.statvfs({str(tmp_path)!r}).f_flag & 1))
except PermissionError:
    print("0o750 True")  # user namespaces are restricted here
"""
    assert child(script) == "0o750 True"
    assert tmp_path.stat().st_mode & 0o777 != 0o750


def test_library_and_system_calls_take_numbers_bytes_and_buffers() -> None:
    assert kernel.library_call("getpid") == os.getpid()
    buffer = bytearray(16)
    assert kernel.library_call("gethostname", buffer, len(buffer)) == 0 or buffer
    memory = bytearray(b"abcd")
    kernel.overwrite(kernel.address_of(memory), b"xy")
    assert memory == b"xycd"
    with pytest.raises(OSError, match="system call 438"):
        kernel.system_call(438, -1, 0, 0)
    assert struct.calcsize("l") == 8


def test_an_unknown_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "6", "v", "sparc")))
    with pytest.raises(OSError, match="clone: the number of this system call on sparc"):
        kernel.clone_process(0)
