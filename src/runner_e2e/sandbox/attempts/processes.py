"""Attempts at the harness's processes, and at what processes share: sockets, memory, queues, keys, rights."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
import subprocess

from runner_e2e import kernel
from runner_e2e.sandbox.attempts.model import AbsentError, Attempt, Targets

__all__ = ["ATTEMPTS"]

_PIDFD_GETFD = 438
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17
_KEYCTL_READ, _KEYCTL_SEARCH, _KEYCTL_LINK = 11, 10, 8
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_SHM_RDONLY = 0o10000


def _of_harness(targets: Targets, name: str) -> str:
    with open(f"/proc/{targets.harness}/{name}", "rb") as file:
        return file.read(100_000).decode(errors="replace")


def environment(targets: Targets) -> str:
    """Read the harness's environment."""
    return _of_harness(targets, "environ")


def command_line(targets: Targets) -> str:
    """Read the harness's command line."""
    return _of_harness(targets, "cmdline")


def any_command_line(targets: Targets) -> str:
    """Read the command line of every process there is, and of every process id up to a million."""
    del targets
    found = []
    for name in [name for name in os.listdir("/proc") if name.isdigit()]:
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                found.append(file.read().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


def mounts(targets: Targets) -> str:
    """Read the harness's mounts."""
    return _of_harness(targets, "mountinfo")


def status(targets: Targets) -> str:
    """Read the harness's status."""
    return _of_harness(targets, "status")


def descriptors(targets: Targets) -> str:
    """List the harness's descriptors."""
    return " ".join(os.listdir(f"/proc/{targets.harness}/fd"))


def descriptor_content(targets: Targets) -> str:
    """Read a file that the harness has open, through its descriptor."""
    return _of_harness(targets, f"fd/{targets.harness_descriptor}")


def root_directory(targets: Targets) -> str:
    """Read a hidden file through the harness's root directory."""
    return _of_harness(targets, f"root{targets.secret}")


def working_directory(targets: Targets) -> str:
    """Read a hidden file through the harness's working directory."""
    return _of_harness(targets, f"cwd/{os.path.basename(targets.secret)}")


def memory(targets: Targets) -> str:
    """Read the harness's memory through /proc."""
    with open(f"/proc/{targets.harness}/mem", "rb", buffering=0) as file:
        file.seek(targets.harness_address)
        return file.read(64).decode(errors="replace")


def memory_by_call(targets: Targets) -> str:
    """Read the harness's memory with process_vm_readv."""
    buffer = bytearray(64)
    own = bytearray(kernel.address_of(buffer).to_bytes(8, "little") + (64).to_bytes(8, "little"))
    other = bytearray(targets.harness_address.to_bytes(8, "little") + (64).to_bytes(8, "little"))
    kernel.library_call("process_vm_readv", targets.harness, own, 1, other, 1, 0, wide=True)
    return buffer.decode(errors="replace")


def descriptor_by_call(targets: Targets) -> str:
    """Take a descriptor out of the harness with pidfd_getfd."""
    process = os.pidfd_open(targets.harness)
    descriptor = kernel.system_call(_PIDFD_GETFD, process, targets.harness_descriptor, 0)
    return os.pread(descriptor, 4000, 0).decode(errors="replace")


def trace(targets: Targets) -> str:
    """Trace the harness with ptrace."""
    try:
        kernel.library_call("ptrace", _PTRACE_ATTACH, targets.harness, 0, 0, wide=True)
    except PermissionError:
        if _is_traced(targets.harness):
            raise AbsentError("something traces the harness already, and a process has one tracer") from None
        raise
    os.waitpid(targets.harness, 0x40000000)
    kernel.library_call("ptrace", _PTRACE_DETACH, targets.harness, 0, 0, wide=True)
    return "traced"


def _is_traced(process: int) -> bool:
    """Whether a process has a tracer; False where that cannot be read, as inside a sandbox."""
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            return any(line.startswith(b"TracerPid:") and line.split()[1] != b"0" for line in file)
    except OSError:
        return False


def send_signal(targets: Targets) -> str:
    """Send the harness a signal."""
    os.kill(targets.harness, 18)
    return "sent"


def limits(targets: Targets) -> str:
    """Read the harness's resource limits with prlimit."""
    return str(resource.prlimit(targets.harness, resource.RLIMIT_NOFILE))


def kill_preference(targets: Targets) -> str:
    """Make the kernel prefer the harness when memory is short."""
    with open(f"/proc/{targets.harness}/oom_score_adj", "w") as file:
        file.write("500")
    return "written"


def namespaces(targets: Targets) -> str:
    """Enter the harness's mount namespace and read a hidden file there."""
    descriptor = os.open(f"/proc/{targets.harness}/ns/mnt", os.O_RDONLY)
    kernel.library_call("setns", descriptor, 0)
    with open(targets.secret) as file:
        return file.read()


def abstract_socket(targets: Targets) -> str:
    """Talk to an abstract socket of the harness."""
    return _ask("\0" + targets.abstract_socket)


def hidden_socket(targets: Targets) -> str:
    """Talk to a socket of the harness in a hidden directory."""
    return _ask(targets.hidden_socket)


def _ask(address: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(address)
        return client.recv(4000).decode(errors="replace")


def memory_segment(targets: Targets) -> str:
    """Read System V shared memory of the harness."""
    address = kernel.library_call("shmat", targets.memory_segment, 0, _SHM_RDONLY, wide=True)
    with open("/proc/self/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(64).decode(errors="replace")


def memory_file(targets: Targets) -> str:
    """Read POSIX shared memory of the harness."""
    with open(targets.memory_file) as file:
        return file.read()


def message_queue(targets: Targets) -> str:
    """Take a message from a POSIX queue of the harness."""
    if not targets.message_queue:
        raise AbsentError("this kernel has no POSIX message queues")
    queue = kernel.library_call("mq_open", targets.message_queue.encode(), os.O_RDONLY | os.O_NONBLOCK)
    buffer = bytearray(8192)
    length = kernel.library_call("mq_receive", queue, buffer, len(buffer), None, wide=True)
    # Put it back, for the next attempt.
    writer = kernel.library_call("mq_open", targets.message_queue.encode(), os.O_WRONLY | os.O_NONBLOCK)
    kernel.library_call("mq_send", writer, bytes(buffer[:length]), length, 0)
    return buffer[:length].decode(errors="replace")


def key(targets: Targets) -> str:
    """Read a key of the user's keyring by its number, linking it first."""
    if not targets.key:
        raise AbsentError("this kernel has no keyrings")
    number = _KEYCTL.get(os.uname().machine)
    if number is None:
        raise AbsentError("the number of keyctl is not known here")
    with contextlib.suppress(OSError):  # reading decides
        kernel.system_call(number, _KEYCTL_LINK, targets.key, -3)
    buffer = bytearray(256)
    length = kernel.system_call(number, _KEYCTL_READ, targets.key, buffer, len(buffer))
    return buffer[:length].decode(errors="replace")


def super_user(targets: Targets) -> str:
    """Read a hidden file as root, with sudo."""
    path = shutil.which("sudo")
    if path is None:
        raise AbsentError("there is no sudo")
    done = subprocess.run(
        [path, "-n", "cat", targets.secret], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise OSError(1, done.stderr.strip())
    return done.stdout


def core_pattern(targets: Targets) -> str:
    """Open the kernel's core pattern for writing, which would run a program as root."""
    del targets
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return "opened"


def own_environment(targets: Targets) -> str:
    """Look for the id in this process's own environment."""
    del targets
    with open("/proc/self/environ", "rb") as file:
        return file.read().decode(errors="replace")


ATTEMPTS = (
    Attempt(name="run:harnessEnviron", run=environment),
    Attempt(name="run:harnessCmdline", run=command_line),
    Attempt(name="any-command-line", run=any_command_line),
    Attempt(name="harness-mounts", run=mounts, reads=False),
    Attempt(name="harness-status", run=status, reads=False),
    Attempt(name="harness-descriptors", run=descriptors, reads=False),
    Attempt(name="harness-descriptor-content", run=descriptor_content),
    Attempt(name="harness-root", run=root_directory),
    Attempt(name="harness-working-directory", run=working_directory),
    Attempt(name="harness-memory", run=memory),
    Attempt(name="process-vm-readv", run=memory_by_call),
    Attempt(name="pidfd-getfd", run=descriptor_by_call),
    Attempt(name="ptrace", run=trace, reads=False),
    Attempt(name="signal", run=send_signal, reads=False),
    Attempt(name="prlimit", run=limits, reads=False),
    Attempt(name="oom-score", run=kill_preference, reads=False),
    Attempt(name="setns", run=namespaces, may_lack=True),
    Attempt(name="abstract-socket", run=abstract_socket),
    Attempt(name="hidden-socket", run=hidden_socket),
    Attempt(name="system-v-memory", run=memory_segment),
    Attempt(name="memory-file", run=memory_file),
    Attempt(name="message-queue", run=message_queue),
    Attempt(name="keyring", run=key),
    Attempt(name="sudo", run=super_user, may_lack=True),
    Attempt(name="core-pattern", run=core_pattern, reads=False, may_lack=True),
    Attempt(name="own-environment", run=own_environment),
)
