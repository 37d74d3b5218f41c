"""What tests leave is removed, and nothing of the machine with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.clearing import remove_tree

ROOT = Path(__file__).parent.parent
# In mounts of its own. What is mounted below the place is the test's own, should all go wrong.
MOUNTED = """
import subprocess, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from tests.clearing import remove_tree
place, machine = Path(sys.argv[3]), Path(sys.argv[4])
subprocess.run(["mount", "--bind", machine, place / "here"], check=True)
for each in (place, place / "here"):
    try:
        remove_tree(each)
    except RuntimeError as error:
        print(error)
subprocess.run(["umount", place / "here"], check=True)
remove_tree(place)
print(place.exists())
"""


def test_what_tests_made_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "deep" / "deeper").mkdir(parents=True)
    (place / "deep" / "link").symlink_to(ROOT)
    remove_tree(place)
    assert not place.exists()
    assert (ROOT / "tests").is_dir()


def test_what_is_mounted_is_left(tmp_path: Path) -> None:
    place, machine = tmp_path / "place", tmp_path / "machine"
    (place / "here").mkdir(parents=True)
    (place / "file").touch()
    machine.mkdir()
    (machine / "kept").touch()
    head = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", MOUNTED]
    command = [*head, *map(str, (ROOT, ROOT / "src", place, machine))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    message = f"{{}} is not removed: {place / 'here'} is mounted in it; a test has to unmount what it mounts\n"
    assert done.stdout == f"{message.format(place)}{message.format(place / 'here')}False\n", done.stderr
    assert (machine / "kept").exists()
