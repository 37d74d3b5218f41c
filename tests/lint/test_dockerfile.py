"""Dockerfiles: what the last stage starts, and where its files come from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.dockerfile import read_dockerfile


@pytest.mark.parametrize(
    ("text", "entry", "command"),
    [
        ("", (), ()),
        ('FROM a\nENTRYPOINT ["/x", "y"]\nCMD ["z"]', ("/x", "y"), ("z",)),
        ("FROM a\nENTRYPOINT /x y", ("/bin/sh", "-c", "/x y"), ()),
        ("FROM a\nCMD tool", (), ("/bin/sh", "-c", "tool")),
        ('FROM a\nSHELL ["bash", "-c"]\nENTRYPOINT x', ("bash", "-c", "x"), ()),
        ('FROM a\nENTRYPOINT ["/x"]\nFROM b', (), ()),
        ('FROM a\nCMD ["z"]\nENTRYPOINT ["/x"]', ("/x",), ()),
        ('from a\nentrypoint ["/x"]', ("/x",), ()),
        ('FROM a\nENTRYPOINT \\\n  # a comment\n  ["/x", \\\n   "y"]', ("/x", "y"), ()),
        ('# escape=`\nFROM a\nENTRYPOINT `\n ["/x"]', ("/x",), ()),
        ('FROM a\nENTRYPOINT ["/x", 1]', ("/bin/sh", "-c", '["/x", 1]'), ()),
        ("FROM a\nENTRYPOINT ['/x']", ("/bin/sh", "-c", "['/x']"), ()),
        ("FROM a\nENTRYPOINT []", (), ()),
    ],
)
def test_what_starts(text: str, entry: tuple[str, ...], command: tuple[str, ...]) -> None:
    image = read_dockerfile(text)
    assert (image.entry, image.command) == (entry, command)


@pytest.mark.parametrize(
    ("copy", "path", "sources"),
    [
        ("COPY a.sh /a.sh", "/a.sh", ("a.sh",)),
        ("COPY a.sh /b.sh", "/b.sh", ("a.sh",)),
        ("COPY a.sh /", "/a.sh", ("a.sh",)),
        ("COPY a.sh b.sh /bin/", "/bin/b.sh", ("b.sh",)),
        ("COPY src /app", "/app/x/y.sh", ("src/x/y.sh",)),
        ("COPY . .", "run.sh", ("run.sh",)),
        ("WORKDIR /app\nWORKDIR lib\nCOPY . .", "/app/lib/run.sh", ("run.sh",)),
        ("WORKDIR /app\nCOPY a.sh .", "a.sh", ("a.sh",)),
        ('COPY --chmod=755 --chown=me:me ["a b.sh", "/x/"]', "/x/a b.sh", ("a b.sh",)),
        ("ADD ./a.sh /a.sh", "/a.sh", ("a.sh",)),
        ("COPY --from=build /a.sh /a.sh", "/a.sh", ()),
        ("ADD https://example.org/a.sh /a.sh", "/a.sh", ()),
        ("COPY $SRC /a.sh", "/a.sh", ()),
        ("COPY *.sh /bin/", "/bin/a.sh", ()),
        ("COPY a.sh", "/a.sh", ()),
        ("COPY 'a /b", "/b", ()),
        ("COPY a /x\nCOPY b /x", "/x", ("b", "a")),
    ],
)
def test_where_a_file_comes_from(copy: str, path: str, sources: tuple[str, ...]) -> None:
    found = read_dockerfile(f"FROM alpine\n{copy}\n").sources_of(path)
    assert found[: max(len(sources), 1)] == sources  # the likeliest first


@given(st.text(alphabet='FROMCPYADENTIW[]"\\,$ /.a\n#=-', max_size=80))
def test_no_text_is_too_strange(text: str) -> None:
    image = read_dockerfile(text)
    assert isinstance(image.sources_of("/a"), tuple)
