"""Comments and commands of scripts, as each language reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.comments import Reading, language_of, read_script


@pytest.mark.parametrize(
    ("shell", "text", "comments"),
    [
        ("bash", "a # b\n# c", ["# b", "# c"]),
        ("bash", "a#b '#c' \"#d\" \\#e ${#f} $# ${g#h}", []),
        ("bash", "cat <<X\n# a\nX\n# b", ["# b"]),
        ("bash", "a \\\n  b # c\nif x; then # d\ny; fi", ["# c", "# d"]),
        ("bash", "a $(b # c\n) # d", ["# c", "# d"]),
        ("bash", "case x in # a\nb) c ;; # d\nesac", ["# a", "# d"]),
        ("bash", "a # b\nif", ["# b"]),
        ("bash -e {0}", "a # ${{ '#' }} b\n", ["# xxxxxxxxxx b"]),
        ("sh", "a # b", ["# b"]),
        ("python", "a = '# b' # c\nd = '''\n# e\n'''", ["# c"]),
        ("python", "a = 1 # b\nc = (", ["# b"]),
        ("python {0}", "\té = 1 # b", ["# b"]),
        ("pwsh", "a # b\n  # c", ["# c"]),
        ("cmd", "a\n:: b\nrem c\n@REM d\nremove e", [":: b", "rem c", "@REM d"]),
        ("javascript", "a // b\n  // c", ["// c"]),
    ],
)
def test_comments(shell: str, text: str, comments: list[str]) -> None:
    masked = text.replace("${{ '#' }}", "xxxxxxxxxx")
    assert [masked[start:end] for start, end in read_script(text, shell).comments] == comments


@pytest.mark.parametrize(
    ("shell", "text", "extents"),
    [
        ("bash", "a\nb \\\n  c\nd", ["b \\\n  c"]),
        ("bash", "a 'b\nc' d\n", ["a 'b\nc' d"]),
        ("bash", "if a; then\n  b 'c\nd'\nfi", ["b 'c\nd'"]),
        ("python", "a = [\n  1,\n]\nif b:\n  c(\n  )\n", ["a = [\n  1,\n]", "c(\n  )"]),
        ("python", "a = (\n", []),
    ],
)
def test_extents_are_commands_of_several_lines(shell: str, text: str, extents: list[str]) -> None:
    assert [text[start:end] for start, end in read_script(text, shell).extents] == extents


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("a.sh", "", "bash"),
        ("a", "#!/usr/bin/env python3\n", "python"),
        ("a", "#!/usr/bin/node\n", "javascript"),
        ("a", "python\n", "bash"),
        ("a.py", "", "python"),
        ("a.mjs", "", "javascript"),
        ("a.ps1", "", "pwsh"),
        ("a.bat", "", "cmd"),
        ("a.rb", "", "perl"),
        ("py", "", "bash"),
    ],
)
def test_the_language_of_a_file(name: str, text: str, language: str) -> None:
    assert language_of(name, text) == language


def test_a_place_is_looked_up() -> None:
    reading = Reading(comments=((2, 5), (9, 12)))
    assert [reading.comment_at(offset) for offset in (0, 2, 4, 5, 9, 11, 12, 99)] == [
        None, 2, 2, None, 9, 9, None, None,
    ]  # fmt: skip
    assert Reading().comment_at(0) is None


@given(st.text(alphabet="ab #'\"\\\n$(){}<;|&=`", max_size=40), st.sampled_from(["bash", "python", "pwsh", "cmd"]))
def test_every_text_can_be_read(text: str, shell: str) -> None:
    reading = read_script(text, shell)
    assert list(reading.comments) == sorted(reading.comments)
    assert all(0 <= start <= end <= len(text) for start, end in (*reading.comments, *reading.extents))
