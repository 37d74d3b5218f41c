from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.graders import commands
from runner_e2e.graders.commands import read_command, resolve


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("echo x > a", ["a"]),
        ("echo x >> 'a b'", ["a b"]),
        ("echo x >| a", ["a"]),
        ("ls &> a", ["a"]),
        ("ls > a 2> b", ["a", "b"]),
        ("ls 2>&1 >/dev/null", []),
        ("ls >&2", []),
        ("echo a \\> b", []),
        ("echo 'a > b'", []),
        ("echo x | tee a b", ["a", "b"]),
        ("touch -d yesterday a", ["a"]),
        ("touch -- -a", ["-a"]),
        ("mkdir -m 700 a", ["a"]),
        ("cp a b c", ["c"]),
        ("mv a b", ["a", "b"]),
        ("dd if=/dev/zero of=a count=1", ["a"]),
        ("sed -i s/a/b/ a", ["a"]),
        ("sed -n s/a/b/p a", []),
        ("chmod +x a", ["a"]),
        ("git commit -m x", [".git"]),
        ("git status", []),
        ("sudo -n touch a", ["a"]),
        ("FOO=1 touch a", ["a"]),
        ("timeout 5 sh -c 'touch a'", ["a"]),
        ("bash -lc \"bash -c 'echo x > a'\"", ["a"]),
        ("bash <<'E'\ntouch a\nE", ["a"]),
        ("x=$(touch a)", ["a"]),
        ("for i in 1 2; do touch a; done", ["a"]),
        ("apply_patch <<'E'\n*** Begin Patch\n*** Update File: a\n+x\n*** End Patch\nE", ["a"]),
        ("node -e \"fs.appendFileSync('a', 'x')\"", ["a"]),
        ("perl -e 'open(F, \">a\")'", ["a"]),
        ("(cd sub; touch a)", ["a"]),
    ],
)
def test_what_a_command_writes(text: str, paths: list[str]) -> None:
    assert [write.path for write in read_command(text).writes] == paths


@pytest.mark.parametrize(
    ("text", "certain", "decides"),
    [
        ("touch a", True, True),
        ("touch a; true", True, False),
        ("true && touch a", True, True),
        ("ls && touch a", False, True),
        ("touch a && ls", True, True),
        ("touch a || ls", True, False),
        ("exit; touch a", False, True),
        ("set -e; touch a", False, True),
        ("if x; then touch a; fi", False, False),
        ("if touch a; then x; fi", True, False),
        ("touch a &", False, False),
        ("! touch a", True, False),
        ("touch a | cat", True, False),
        ("f() { touch a; }", False, False),
        ("mkdir -p a", True, False),
    ],
)
def test_whether_a_write_is_run_and_shows_in_the_status(text: str, certain: bool, decides: bool) -> None:
    (write,) = read_command(text).writes
    assert (write.certain, write.decides) == (certain, decides)


@pytest.mark.parametrize(
    ("text", "opaque", "unclear"),
    [
        ("ls -la", False, False),
        ("cat a", True, False),
        ("cat a > b", False, False),
        ("cat <<'E'\nx\nE", False, False),
        ("make", True, True),
        ("./script.sh", True, True),
        ("bash script.sh", True, True),
        ("curl x | sh", True, True),
        ('bash -c "$X"', True, True),
        ('echo x > "$F"', False, True),
        ("python3 -c 'print(1)'", True, True),
        ("git log", True, False),
        ("git status", False, False),
        ("echo 'unfinished", True, False),
    ],
)
def test_what_cannot_be_read_is_told(text: str, opaque: bool, unclear: bool) -> None:
    reading = read_command(text)
    assert (reading.opaque, reading.unclear) == (opaque, unclear)


def test_directories_are_followed() -> None:
    def places(text: str) -> list[str | None]:
        return [resolve(write.path, write.directory) for write in read_command(text, "/w").writes]

    assert places("touch a; cd sub; touch a; cd ..; touch a") == ["/w/a", "/w/sub/a", "/w/a"]
    assert places("(cd /tmp; touch a); touch a") == ["/tmp/a", "/w/a"]
    assert places('cd "$X"; touch a') == [None]
    assert places('touch "$PWD/a"') == ["/w/a"]


@pytest.mark.parametrize(
    "text", ["(" * 500 + "x", "sh -c " * 50 + "x", "a" * 100_000, "$(" * 300, "\0", "if", "x\n" * 9]
)
def test_absurd_commands_are_read_in_time(text: str) -> None:
    read_command(text)


words = st.text("abc./-='> $", min_size=1, max_size=6).map(shlex.quote) | st.sampled_from(
    ["-n", "touch", "rm", "-f", "cp", "cat", "cd", "time", "if", "env", "A=1", "git", "sed", "-i", "mkdir", "-p"]
)


@given(st.lists(words, min_size=1, max_size=5).map(" ".join))
def test_the_short_way_for_plain_commands_reads_the_same(text: str) -> None:
    short = commands.read_command.__wrapped__(text, "/w")
    reader = commands._Reader(directory="/w")
    reader.read_text(text, commands._Context(certain=True, decides=True))
    assert short.writes == tuple(reader.writes)
    assert (short.opaque, short.unclear, short.printed) == (reader.opaque, reader.unclear, tuple(reader.printed))
