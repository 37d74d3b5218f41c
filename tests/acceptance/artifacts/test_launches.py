"""What an artifact sees of its launch: from a snapshot, in place, nested; scripts; hosts that refuse memory files."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.artifacts.conftest import PRIVILEGE, ROOT, as_root, sha256

from runner_e2e.artifacts.reasons import reason, root_refused

if TYPE_CHECKING:
    from tests.acceptance.artifacts.conftest import Host

NODE_MODULES = ROOT / "tests" / "node" / "node_modules"
RUNTIMES = {
    "codex": NODE_MODULES / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    "opencode": NODE_MODULES / "opencode-linux-x64/bin/opencode",
}


@pytest.fixture(params=["snapshot", "erofs", "squashfs"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def placed(host: Host, content: Path, way: str) -> tuple[Path, Path | str]:
    """The folder that holds the artifacts, and the trusted root: an image, or the folder itself and none."""
    if way == "snapshot":
        return content, ""
    rom = host.rom(way, content=content)
    return rom, rom


@pytest.mark.parametrize("program", ["probe", "static"])
def test_nested_launches_report_the_same_executable(host: Host, way: str, program: str) -> None:
    content = host.folder("content")
    shutil.copy(host.probes / program, content / "tool")
    folder, root = placed(host, content, way)
    for order in ("exec", "spawn"):
        ran = host.launch(folder / "tool", order, root=root)
        assert ran.status == 0, ran.log
        outer, nested = ran.shown
        assert outer == nested
        assert outer["exe"] == (str(folder / "tool") if root else "/memfd:tool_(deleted)")
        assert outer["runtime"].startswith("/proc/self/fd/")


def test_a_nested_launch_checks_the_snapshot_it_was_handed_and_uses_it_again(host: Host) -> None:
    tool = host.content() / "tool"
    nested = [*host.entry(), "--sha256", sha256(tool), "/proc/self/fd/20", "--", "show"]
    ran = host.launch(tool, "run", *nested)
    assert ran.status == 0, ran.log
    assert ran.shown[0]["exe"] == "/memfd:tool_(deleted)"
    assert ran.log[-1].startswith("artifact: /proc/self/fd/20 runs from the sealed snapshot it was handed")
    nested[nested.index("--sha256") + 1] = "1" * 64
    assert host.launch(tool, "run", *nested).status == 125


def test_a_nested_launch_of_a_descriptor_on_the_root_runs_in_place(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    words = ["--sha256", "1" * 64, "--trusted-launch-root", rom, "/proc/self/fd/20", "--", "show"]
    ran = host.launch(rom / "tool", "run", *host.entry(), *words, root=rom)
    assert ran.shown[0]["exe"] == str(rom / "tool"), ran.log


def test_a_descriptor_that_is_not_open_is_not_found(host: Host) -> None:
    ran = host.launch("/proc/self/fd/77", digest="1" * 64)
    assert ran.status == 127
    assert "descriptor 77 is not open in this process" in "\n".join(ran.log)


@pytest.mark.parametrize("interpreter", ["/bin/sh", "/usr/bin/env bash", "/usr/bin/env node"])
def test_scripts_run_through_their_interpreter(host: Host, way: str, interpreter: str) -> None:
    content = host.folder("content")
    script = content / "script"
    node = interpreter.endswith("node")
    text = "console.log('said ' + process.argv.slice(2))" if node else 'echo "said $1,$2"'
    script.write_text(f"#!{interpreter}\n{text}\n")
    script.chmod(0o755)
    folder, root = placed(host, content, way)
    more = host.actor.environment(NODE_OPTIONS="--preserve-symlinks-main") if node else host.actor.environment()
    ran = host.launch(folder / "script", "one", "two words", root=root, env=more)
    assert (ran.status, ran.out) == (0, "said one,two words\n"), ran.log


def test_a_script_without_its_interpreter_cannot_be_executed(host: Host, way: str) -> None:
    content = host.folder("content")
    for name, line in (("lost", "#!/no/such/interpreter\n"), ("plain", "echo no first line\n")):
        (content / name).write_text(line)
        (content / name).chmod(0o755)
    folder, root = placed(host, content, way)
    ran = host.launch(folder / "lost", root=root)
    assert ran.status == 126
    assert "its interpreter does not exist" in "\n".join(ran.log)
    ran = host.launch(folder / "plain", root=root)
    assert ran.status == 126
    assert "neither a program nor a script" in "\n".join(ran.log)


def test_status_and_signals_are_the_artifacts_own(host: Host, way: str) -> None:
    folder, root = placed(host, host.content(), way)
    assert host.launch(folder / "tool", "exit", 7, root=root).status == 7
    script = host.folder("content") / "script"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    assert host.launch(script).status == -9


def test_what_python_ignores_the_artifact_gets_as_usual(host: Host) -> None:
    script = host.folder("content") / "script"
    script.write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    script.chmod(0o755)
    ignored = int(host.launch(script).out.split()[1], 16)
    assert not ignored & (1 << 12), "SIGPIPE"
    assert not ignored & (1 << 24), "SIGXFSZ"


def test_a_wrong_digest_never_runs(host: Host) -> None:
    tool = host.content() / "tool"
    ran = host.launch(tool, digest=sha256(host.probes / "evil"))
    assert (ran.status, ran.out) == (125, "")
    assert f"its SHA-256 is {sha256(tool)}" in "\n".join(ran.log)


def test_the_snapshot_cannot_be_changed_by_whoever_runs_it(host: Host) -> None:
    """The running script tries everything on its own descriptor."""
    script = host.folder("content") / "script"
    attempts = f"""#!{host.actor.python}
import fcntl, mmap, os, sys
path = os.environ["PAPERCLIP_VERIFIED_RUNTIME_EXECUTABLE"]
number = int(path.rpartition("/")[2])
print(hex(fcntl.fcntl(number, fcntl.F_GET_SEALS)))
def attempt(what, action):
    try:
        action()
    except (OSError, PermissionError, ValueError) as error:
        return
    print("possible:", what)
def writable():
    return os.open(path, os.O_RDWR)
attempt("write", lambda: os.write(number, b"x"))
attempt("write through a new descriptor", lambda: os.write(writable(), b"x"))
attempt("shorten", lambda: os.ftruncate(writable(), 1))
attempt("lengthen", lambda: os.ftruncate(writable(), 1 << 20))
attempt("writable map", lambda: mmap.mmap(writable(), 1, mmap.MAP_SHARED, mmap.PROT_WRITE))
attempt("another seal", lambda: fcntl.fcntl(number, fcntl.F_ADD_SEALS, 1))
attempt("chmod", lambda: os.chmod(path, 0o444))
"""
    script.write_text(attempts)
    script.chmod(0o755)
    out = host.launch(script).out.splitlines()
    assert int(out[0], 16) & 0x0F == 0x0F
    if [int(number) for number in os.uname().release.split(".")[:2]] >= [6, 3]:
        assert out[0] == "0x3f"
        assert out[1:] == []
    else:
        assert [line for line in out[1:] if line != "possible: chmod"] == []


def test_nobody_of_the_same_user_reaches_the_snapshot_before_it_is_sealed(user_host: Host) -> None:
    """While the launcher works, its descriptors are closed to other processes of its user."""
    large = user_host.folder("content") / "large"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    large.chmod(0o755)
    script = (
        "import os, subprocess\n"
        "launcher = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL)\n"
        "while launcher.poll() is None:\n"
        "    try:\n        os.listdir(f'/proc/{launcher.pid}/fd')\n"
        "    except PermissionError:\n        print('closed')\n        break\n"
        "launcher.kill()\n"
    )
    seen = user_host.actor.python_script(script, *user_host.entry(), "--sha256", "1" * 64, large)
    assert seen.stdout == "closed\n", seen.stderr


@pytest.mark.parametrize("setting", [1, 2])
def test_hosts_that_restrict_memory_files(host: Host, kind: str, setting: int) -> None:
    """``vm.memfd_noexec`` belongs to the pid namespace, so that a new one can really be set."""
    rom = host.rom(kind)
    digest = sha256(rom / "tool")
    words = ["--sha256", digest, rom / "tool", "--", "show"]
    copied = restricted(host, setting, words)
    if setting == 1:
        assert copied.returncode == 0, copied.stderr
        assert "exe=/memfd:tool (deleted)" in copied.stdout
    else:
        assert copied.returncode == 126
        assert "vm.memfd_noexec is 2: executable memory files are refused" in copied.stderr
        assert "sysctl vm.memfd_noexec=1" in copied.stderr
    in_place = restricted(host, setting, ["--trusted-launch-root", rom, *words])
    assert in_place.returncode == 0, in_place.stderr
    assert f"exe={rom / 'tool'}" in in_place.stdout


def restricted(host: Host, setting: int, words: list[object]) -> subprocess.CompletedProcess[str]:
    """A launch in a new pid namespace that has this setting."""
    script = f'echo {setting} > /proc/sys/vm/memfd_noexec && exec "$@"'
    outer = [*PRIVILEGE, "unshare", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c", script, "sh"]
    become = host.actor.prefix
    if not host.actor.root and not become:  # the outer words made us root
        user = host.actor.user
        become = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--")
    elif host.actor.root:
        become = ()
    command = [*outer, *become, *map(str, [*host.entry(), *words])]
    assert Path("/proc/sys/vm/memfd_noexec").exists(), "this needs Linux 6.3"
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=host.actor.work)


@pytest.mark.parametrize("name", RUNTIMES)
def test_runtimes_of_over_100_mb(root_host: Host, way: str, name: str) -> None:
    """Real agents' runtimes, copied or in place, that start and say their version."""
    runtime = RUNTIMES[name]
    content = root_host.folder("content")
    shutil.copy(runtime, content / name)
    folder, root = placed(root_host, content, way)
    assert (folder / name).stat().st_size > 100_000_000
    ran = root_host.launch(folder / name, "--version", root=root)
    assert ran.status == 0, (ran.out, ran.log)
    assert any(character.isdigit() for character in ran.out)
    assert ("runs in place" in ran.log[0]) == bool(root)


NESTED_NODE = """
const { spawnSync } = require("node:child_process");
const { readlinkSync } = require("node:fs");
const runtime = process.env.PAPERCLIP_VERIFIED_RUNTIME_EXECUTABLE;
const number = Number(runtime.split("/").pop());
const stdio = ["inherit", "pipe", "inherit"];
while (stdio.length < number) stdio.push("ignore");
stdio.push(number);
const show = `console.log(require("node:fs").readlinkSync("/proc/self/exe"))`;
const child = spawnSync(runtime, ["-e", show], { stdio });
console.log(readlinkSync("/proc/self/exe"));
console.log(child.stdout.toString().trim());
"""


def test_a_node_runtime_starts_itself_again(root_host: Host, way: str) -> None:
    node = shutil.which("node")
    assert node
    content = root_host.folder("content")
    shutil.copy(os.path.realpath(node), content / "node")
    folder, root = placed(root_host, content, way)
    ran = root_host.launch(folder / "node", "-e", NESTED_NODE, root=root)
    outer, nested = ran.out.splitlines()
    assert outer == nested == (str(folder / "node") if root else "/memfd:node (deleted)"), ran.log


def test_files_that_are_never_launched(host: Host) -> None:
    folder = host.content()
    (folder / "link").symlink_to("tool")
    os.mkfifo(folder / "pipe")
    plain = folder / "plain"
    plain.write_text("data")
    plain.chmod(0o644)
    for name, status, why in (
        ("link", 125, "symbolic link"),
        ("pipe", 125, "not a regular file"),
        ("bin", 125, "not a regular file"),
        ("plain", 126, "nobody execute"),
        ("absent", 127, "no such file"),
        ("tool/x", 127, "not a directory"),
    ):
        ran = host.launch(folder / name, digest="1" * 64)
        assert ran.status == status, name
        assert why in "\n".join(ran.log)
    assert host.launch("/dev/null", digest="1" * 64).status == 125


def test_a_file_that_this_user_may_not_read(user_host: Host) -> None:
    tool = user_host.content() / "tool"
    digest = sha256(tool)
    as_root("chown", "0", tool)
    as_root("chmod", "711", tool)
    ran = user_host.launch(tool, digest=digest)
    assert ran.status == 126
    assert "cannot be read" in "\n".join(ran.log)


def test_unknown_options_are_ignored_with_a_warning(host: Host) -> None:
    tool = host.content() / "tool"
    ran = host.launch(tool, more=["--newer", "value", "--asigned", "--level=3"])
    assert ran.shown[0]["mark"] == "good"
    assert ran.log[:-1] == [
        "artifact: warning: unknown option --newer is ignored",
        "artifact: warning: value is ignored with the option before it",
        "artifact: warning: unknown option --asigned is ignored; did you mean --assigned?",
        "artifact: warning: unknown option --level=3 is ignored",
    ]


def test_the_command_line_says_the_same(root_host: Host, kind: str) -> None:
    rom = root_host.rom(kind)
    program = [shutil.which("runner-e2e") or ROOT / ".venv/dev/bin/runner-e2e", "artifact"]

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*map(str, program), *map(str, words)], capture_output=True, text=True, check=False)

    digest = call("digest", rom / "tool")
    assert digest.stdout == subprocess.check_output(["sha256sum", rom / "tool"], text=True)
    checked = call("check", "--trusted-launch-root", rom, rom / "tool")
    assert checked.returncode == 0
    assert "no:" not in checked.stdout
    page = (ROOT / "docs" / "artifacts.md").read_text().partition("$ runner-e2e artifact check --trusted")[2]
    documented = page.partition("\n")[2].partition("\n```")[0].splitlines()
    questions = [line.partition(":")[0] for line in checked.stdout.splitlines()]
    assert questions == [line.partition(":")[0] for line in documented]
    ran = call("exec", "--sha256", "1" * 64, "--trusted-launch-root", rom, "--quiet", rom / "tool")
    assert f"exe={rom / 'tool'}" in ran.stdout
    assert ran.stderr == ""
    relative = call("exec", "--sha256", sha256(rom / "tool"), "--trusted-launch-root", "rom", "--quiet", rom / "tool")
    assert relative.stderr.splitlines()[0] == root_refused("rom", reason("root-not-absolute"))
    assert call("exec", "--sha256", "1" * 64, rom / "tool").returncode == 125
    assert stat.S_IMODE((rom / "tool").stat().st_mode) == 0o755
