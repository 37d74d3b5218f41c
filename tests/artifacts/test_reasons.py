"""The table of misconfigurations in the documentation, line by line."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from runner_e2e.artifacts.reasons import TEXTS, not_in_place, reason, root_refused
from runner_e2e.cells.catalog import parse_catalog

PAGE = Path(__file__).parents[2] / "docs" / "artifacts.md"
ROOT_CODES = ("root-", "image-", "device-")


def placeholders(code: str) -> dict[str, str]:
    return {name: name.upper() for _, name, _, _ in string.Formatter().parse(TEXTS[code]) if name}


def line(code: str) -> str:
    """The line of the log for *code*, with placeholders in capitals."""
    why = reason(code, **placeholders(code))
    refused = code.startswith(ROOT_CODES) and code != "root-unused"
    return root_refused("ROOT", why) if refused else not_in_place("PATH", why)


@pytest.mark.parametrize("code", TEXTS)
def test_every_reason_is_documented(code: str) -> None:
    rows = PAGE.read_text().partition("## Misconfigurations")[2]
    assert f"| `{line(code)}` |" in rows


def test_every_documented_line_is_a_reason() -> None:
    rows = PAGE.read_text().partition("## Misconfigurations")[2].partition("\n## ")[0]
    documented = re.findall(r"\| `(artifact: .*?)` \|$", rows, re.MULTILINE)
    assert sorted(documented) == sorted(line(code) for code in TEXTS)


def test_the_documented_catalog_is_read() -> None:
    example = PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]
    minimal = "harness: {command: [run]}\nprofiles: {p: }\nenvironments: {e: }\n"
    minimal += "suites: {s: {profiles: [p], environments: [e], cases: [a]}}\n"
    (file,) = parse_catalog(minimal + example, path="catalog.yml").artifacts.files
    assert file.path == "/rom/bin/agent"
