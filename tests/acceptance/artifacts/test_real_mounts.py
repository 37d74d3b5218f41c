"""In place or not, decided on real erofs and squashfs images and on what is laid over and beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from tests.acceptance.artifacts.conftest import as_root, sha256

from runner_e2e.artifacts.reasons import not_in_place, reason, root_refused

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.artifacts.conftest import Host, Ran

WRONG = "0" * 64


def refused_root(root: Path | str, code: str, **values: object) -> str:
    return root_refused(str(root), reason(code, **values))


def fell_back(path: Path | str, code: str, **values: object) -> str:
    return not_in_place(str(path), reason(code, **values))


def assert_snapshot(ran: Ran, *lines: str) -> None:
    """It ran from a sealed snapshot, and the log says exactly why."""
    assert ran.status == 0, ran.log
    assert ran.shown[0]["exe"].startswith("/memfd:")
    assert ran.shown[0]["mark"] == "good"
    assert ran.log[:-1] == list(lines)
    assert "runs from a sealed snapshot" in ran.log[-1]


def assert_in_place(ran: Ran, path: Path) -> None:
    assert ran.status == 0, ran.log
    assert ran.shown[0]["exe"] == str(path)
    assert ran.log == [f"artifact: {path} runs in place, {path.stat().st_size} bytes, nothing copied or hashed"]


def test_an_image_runs_in_place_without_a_hash(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    assert_in_place(host.launch(rom / "bin" / "tool", root=rom, digest=WRONG), rom / "bin" / "tool")


def test_the_root_is_off_by_default(host: Host, kind: str) -> None:
    tool = host.rom(kind) / "tool"
    assert_snapshot(host.launch(tool))
    assert host.launch(tool, digest=WRONG).status == 125


def test_an_assigned_executable_is_always_copied(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    tool = rom / "tool"
    assert_snapshot(host.launch(tool, root=rom, more=["--assigned"]), fell_back(tool, "assigned"))
    assert host.launch(tool, root=rom, more=["--assigned"], digest=WRONG).status == 125


def test_a_noexec_mount_is_no_root(host: Host, kind: str) -> None:
    rom = host.rom(kind, options="ro,noexec")
    lines = refused_root(rom, "root-noexec"), fell_back(rom / "tool", "root-unused")
    assert_snapshot(host.launch(rom / "tool", root=rom), *lines)


def test_a_writable_file_system_is_no_root(host: Host) -> None:
    folder = host.content()
    found = subprocess.run(["stat", "-f", "-c", "%t", str(folder)], check=True, capture_output=True, text=True).stdout
    kind = {"ef53": "ext4", "1021994": "tmpfs", "58465342": "xfs", "9123683e": "btrfs", "794c7630": "overlay"}
    lines = (
        refused_root(folder, "root-file-system", kind=kind[found.strip()]),
        fell_back(folder / "tool", "root-unused"),
    )
    assert_snapshot(host.launch(folder / "tool", root=folder), *lines)


def test_a_read_only_bind_of_a_writable_file_system_is_no_root(host: Host) -> None:
    tmpfs = host.mount("none", "tmp", "-t", "tmpfs", "-o", "mode=755")
    as_root("cp", host.content() / "tool", tmpfs / "tool")
    bound = host.mount(tmpfs, "bound", "--bind", "-o", "ro")
    lines = refused_root(bound, "root-file-system", kind="tmpfs"), fell_back(bound / "tool", "root-unused")
    assert_snapshot(host.launch(bound / "tool", root=bound), *lines)


def test_an_overlay_over_images_is_no_root(host: Host) -> None:
    lower, other = host.rom("erofs"), host.rom("squashfs", name="other")
    merged = host.mount("overlay", "merged", "-t", "overlay", "-o", f"ro,lowerdir={lower}:{other}")
    lines = refused_root(merged, "root-file-system", kind="overlay"), fell_back(merged / "tool", "root-unused")
    assert_snapshot(host.launch(merged / "tool", root=merged), *lines)


def numbers(path: Path) -> str:
    device = path.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def test_a_writable_file_system_bound_beneath_the_root_falls_back(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    host.mount(host.content("writable"), str(rom / "bin"), "--bind")
    tool = rom / "bin" / "tool"
    why = fell_back(tool, "other-device", found=numbers(tool), root=rom, device=numbers(rom))
    assert_snapshot(host.launch(tool, root=rom), why)
    assert host.launch(tool, root=rom, digest=WRONG).status == 125


def test_another_image_mounted_beneath_the_root_falls_back(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    image = host.image("squashfs", host.content("second"), "second.img")
    host.mount(image, str(rom / "bin"), "-o", "loop,ro")
    tool = rom / "bin" / "tool"
    why = fell_back(tool, "other-device", found=numbers(tool), root=rom, device=numbers(rom))
    assert_snapshot(host.launch(tool, root=rom), why)


def test_an_overlay_beneath_the_root_falls_back(host: Host) -> None:
    rom = host.rom("erofs")
    options = f"ro,lowerdir={rom / 'bin'}:{host.content('upper')}"
    host.mount("overlay", str(rom / "bin"), "-t", "overlay", "-o", options)
    tool = rom / "bin" / "tool"
    why = fell_back(tool, "other-device", found=numbers(tool), root=rom, device=numbers(rom))
    assert_snapshot(host.launch(tool, root=rom), why)


def test_a_noexec_mount_of_the_same_image_beneath_the_root_falls_back(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    host.mount(rom / "bin", str(rom / "bin"), "--bind", "-o", "ro,noexec")
    tool = rom / "bin" / "tool"
    assert numbers(tool) == numbers(rom)
    assert_snapshot(host.launch(tool, root=rom), fell_back(tool, "noexec"))


def test_a_bind_of_the_image_elsewhere_is_outside(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    elsewhere = host.mount(rom / "bin", "elsewhere", "--bind")
    tool = elsewhere / "tool"
    assert_snapshot(host.launch(tool, root=rom), fell_back(tool, "outside", real=tool, root=rom))


def test_a_name_that_begins_like_the_root_is_outside(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    tool = host.mount(rom, "rom2", "--bind") / "tool"
    assert numbers(tool) == numbers(rom)
    assert_snapshot(host.launch(tool, root=rom), fell_back(tool, "outside", real=tool, root=rom))


def test_a_root_below_the_mount_point_bounds_the_artifacts(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    assert_in_place(host.launch(rom / "bin" / "tool", root=rom / "bin"), rom / "bin" / "tool")
    why = fell_back(rom / "tool", "outside", real=rom / "tool", root=rom / "bin")
    assert_snapshot(host.launch(rom / "tool", root=rom / "bin"), why)


def test_links_and_dots_that_escape_fall_back(host: Host, kind: str) -> None:
    content, outside = host.content(), host.content("outside")
    (content / "way-out").symlink_to(outside)
    rom = host.rom(kind, content=content)
    for path in (rom / "way-out" / "tool", f"{rom}/../outside/tool"):
        why = fell_back(path, "other-device", found=numbers(outside), root=rom, device=numbers(rom))
        assert_snapshot(host.launch(path, root=rom), why)


def test_ways_that_lead_into_the_root_run_in_place(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    (host.place / "way-in").symlink_to(rom)
    for path in (host.place / "way-in" / "tool", f"{host.place}/way-in/bin/../tool", f"{rom}/bin/../tool"):
        ran = host.launch(path, root=rom)
        assert ran.shown[0]["exe"] == str(rom / "tool"), ran.log


def test_a_final_link_is_refused_on_the_root_too(host: Host, kind: str) -> None:
    content = host.content()
    (content / "link").symlink_to("tool")
    rom = host.rom(kind, content=content)
    ran = host.launch(rom / "link", root=rom)
    assert ran.status == 125
    assert "symbolic link" in "\n".join(ran.log)


@pytest.mark.parametrize(("mode", "whom"), [(0o775, "its group"), (0o757, "everybody")])
def test_a_file_that_others_may_write_is_refused_on_the_root_too(host: Host, kind: str, mode: int, whom: str) -> None:
    content = host.content()
    (content / "tool").chmod(mode)
    rom = host.rom(kind, content=content)
    ran = host.launch(rom / "tool", root=rom)
    assert ran.status == 125
    assert f"it can be written by {whom}" in "\n".join(ran.log)


@pytest.mark.parametrize(
    ("change", "whom"),
    [
        (("chmod", "o+w"), "everybody"),
        (("chmod", "g+w"), "group 0"),
        (("chown", "4242"), "its owner, user 4242"),
        (("setfacl", "-m", "u:4242:rw"), "group 0"),
    ],
    ids=["others", "group", "owner", "access list"],
)
def test_an_image_that_others_may_write_is_no_root(host: Host, kind: str, change: tuple[str, ...], whom: str) -> None:
    rom = host.rom(kind)
    image = host.place / "rom.img"
    if change[0] == "setfacl" and not shutil.which("setfacl"):
        set_access_list(image, 4242)
    else:
        as_root(*change, image)
    lines = refused_root(rom, "image-writable", image=image, whom=whom), fell_back(rom / "tool", "root-unused")
    assert_snapshot(host.launch(rom / "tool", root=rom), *lines)


def set_access_list(path: Path, user: int) -> None:
    """``setfacl -m u:USER:rw`` without the program, which few machines have."""
    entries = [(0x01, 6, -1), (0x02, 6, user), (0x04, 4, -1), (0x10, 6, -1), (0x20, 4, -1)]
    value = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + (who & 0xFFFFFFFF).to_bytes(4, "little")
        for tag, rights, who in entries
    )
    script = "import os, sys; os.setxattr(sys.argv[1], 'system.posix_acl_access', bytes.fromhex(sys.argv[2]))"
    as_root("python3", "-c", script, path, value.hex())


def test_a_deleted_image_is_no_root(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    image = host.place / "rom.img"
    as_root("rm", image)
    lines = refused_root(rom, "image-deleted", image=image), fell_back(rom / "tool", "root-unused")
    assert_snapshot(host.launch(rom / "tool", root=rom), *lines)


def test_an_image_hidden_behind_another_file_is_no_root(root_host: Host, kind: str) -> None:
    rom = root_host.rom(kind)
    image, decoy = root_host.place / "rom.img", root_host.place / "decoy.img"
    decoy.touch()
    device = as_root("findmnt", "-n", "-o", "SOURCE", rom).strip().removeprefix("/dev/")
    root_host.mount(decoy, str(image), "--bind")
    lines = refused_root(rom, "image-replaced", image=image, device=device), fell_back(rom / "tool", "root-unused")
    assert_snapshot(root_host.launch(rom / "tool", root=rom), *lines)


def test_an_image_inside_an_image_that_others_may_write_is_no_root(host: Host) -> None:
    outer = host.folder("outer-content")
    host.image("squashfs", host.content(), "outer-content/inner.img")
    host.rom("erofs", content=outer, name="outer")
    rom = host.mount(host.place / "outer" / "inner.img", "rom", "-o", "loop,ro")
    assert_in_place(host.launch(rom / "tool", root=rom), rom / "tool")
    as_root("chmod", "o+w", host.place / "outer.img")
    lines = (
        refused_root(rom, "image-writable", image=host.place / "outer.img", whom="everybody"),
        fell_back(rom / "tool", "root-unused"),
    )
    assert_snapshot(host.launch(rom / "tool", root=rom), *lines)


def test_an_image_mounted_without_a_loop_device_is_examined_too(root_host: Host) -> None:
    image = root_host.image("erofs", root_host.content())
    rom = root_host.folder("rom")
    script = "import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); p = [a.encode() for a in sys.argv[1:3]]\n"
    script += "sys.exit(ctypes.get_errno() if c.mount(p[0], p[1], b'erofs', 1, None) else 0)"
    done = subprocess.run(["python3", "-c", script, image, rom], check=False)
    if done.returncode == 15:  # ENOTBLK: before Linux 6.12 erofs needs a block device
        as_root("mount", "-o", "loop,ro", image, rom)
    root_host.points.append(rom)
    assert_in_place(root_host.launch(rom / "tool", root=rom), rom / "tool")
    as_root("chmod", "o+w", image)
    lines = refused_root(rom, "image-writable", image=image, whom="everybody"), fell_back(rom / "tool", "root-unused")
    assert_snapshot(root_host.launch(rom / "tool", root=rom), *lines)


@pytest.mark.parametrize(
    ("spelling", "code", "values"),
    [
        ("{rom}/", "root-not-canonical", {"real": "{rom}"}),
        ("{rom}/bin/..", "root-not-canonical", {"real": "{rom}"}),
        ("{place}/alias", "root-not-canonical", {"real": "{rom}"}),
        ("rom", "root-not-absolute", {}),
        ("{rom}/tool", "root-not-directory", {}),
        ("{place}/absent", "root-not-opened", {"error": "No such file or directory"}),
    ],
)
def test_a_root_that_is_not_written_as_the_kernel_does(
    host: Host, kind: str, spelling: str, code: str, values: dict[str, str]
) -> None:
    rom = host.rom(kind)
    (host.place / "alias").symlink_to(rom)
    names = {"rom": str(rom), "place": str(host.place)}
    root = spelling.format(**names)
    expected = {name: value.format(**names) for name, value in values.items()}
    lines = refused_root(root, code, **expected), fell_back(rom / "tool", "root-unused")
    assert_snapshot(host.launch(rom / "tool", root=root, cwd=host.place), *lines)


def test_a_truncated_image_fails_in_a_message(host: Host) -> None:
    content = host.content()
    (content / "zz-large").write_bytes(os.urandom(4 << 20))
    (content / "zz-large").chmod(0o755)
    image = host.image("erofs", content)
    as_root("truncate", "--size", 2 << 20, image)
    rom = host.mount(image, "rom", "-o", "loop,ro")
    large = rom / "zz-large"
    copied = host.launch(large, digest=WRONG)
    assert copied.status == 125
    assert "cannot be read to its end" in "\n".join(copied.log)
    in_place = host.launch(large, root=rom, digest=WRONG)
    assert in_place.status == 126, in_place.log


HOLDER = textwrap.dedent(
    """
    from runner_e2e.artifacts.launch import prepare
    from runner_e2e.artifacts.trusted_root import examine_root
    path, digest, root, order = sys.argv[1:5]
    trusted = examine_root(root) if root else None
    if order == "prepare-first":
        launch = prepare(path, sha256=digest, root=trusted)
    print("ready", flush=True)
    sys.stdin.readline()
    if order == "prepare-last":
        launch = prepare(path, sha256=digest, root=trusted)
    for line in (*launch.warnings(), launch.line()):
        print(line, file=sys.stderr, flush=True)
    launch.execute(["show"], {})
    """
)


def held(host: Host, tool: Path, root: Path | str, order: str, change: Any) -> tuple[str, str]:
    """Holds a launch at one point, changes the machine, lets it go on; what the probe showed, and the log."""
    words = [
        *host.actor.prefix,
        host.actor.python,
        "-I",
        "-S",
        "-c",
        f"import sys\nsys.path.insert(0, sys.argv.pop(1))\n{HOLDER}",
    ]
    words += [str(host.actor.source), str(tool), sha256(tool), str(root), order]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=host.actor.environment()
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "ready\n", holder.communicate()[1]
        change()
        return holder.communicate("go\n", timeout=60)


def test_a_mount_over_the_path_does_not_matter_once_it_is_open(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    evil = host.folder("evil")
    shutil.copy(host.probes / "evil", evil / "tool")

    def cover() -> None:
        host.mount(evil, str(rom), "--bind")

    out, log = held(host, rom / "tool", rom, "prepare-first", cover)
    assert out.split()[-1] == "mark=good", log
    assert "runs in place" in log


def test_a_mount_over_the_path_before_it_is_opened_falls_back_to_the_digest(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    evil = host.folder("evil")
    shutil.copy(host.probes / "evil", evil / "tool")
    out, log = held(host, rom / "tool", rom, "prepare-last", lambda: host.mount(evil, str(rom), "--bind"))
    assert out == ""
    assert "its SHA-256 is" in log


def test_an_image_that_becomes_writable_after_the_start_is_seen(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    image = host.place / "rom.img"
    out, log = held(host, rom / "tool", rom, "prepare-last", lambda: as_root("chmod", "666", image))
    assert "mark=good" in out
    why = fell_back(rom / "tool", "image-writable", image=image, whom="group 0 and everybody")
    assert log.splitlines()[0] == why


@pytest.mark.parametrize("way", ["replaced", "written"])
def test_a_swap_between_check_and_exec_changes_nothing(host: Host, way: str) -> None:
    tool = host.content() / "tool"
    original = tool.read_bytes()

    def swap() -> None:
        if way == "replaced":
            shutil.copy(host.probes / "evil", host.place / "new")
            (host.place / "new").replace(tool)
        else:
            tool.write_bytes((host.probes / "evil").read_bytes())
        assert tool.read_bytes() != original

    out, log = held(host, tool, "", "prepare-first", swap)
    assert out.split()[-1] == "mark=good", log


def test_a_swap_after_the_digest_was_taken_is_refused(host: Host) -> None:
    tool = host.content() / "tool"
    out, log = held(host, tool, "", "prepare-last", lambda: shutil.copy(host.probes / "evil", tool))
    assert out == ""
    assert "its SHA-256 is" in log
