"""Expressions in workflows against GitHub's own workflow parser: what is refused, and where each one stands."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from runner_e2e.lint.repository import Document
from runner_e2e.lint.texts import Reader
from runner_e2e.lint.workflow import Workflow, scalars
from runner_e2e.yaml_positions import compose

if TYPE_CHECKING:
    from runner_e2e.lint.sighting import Sighting

HERE = Path(__file__).parent
NODE = HERE.parent / "node"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def reference(texts: list[str]) -> list[dict[str, list[object]]]:
    """What ``@actions/workflow-parser`` makes of each workflow."""
    done = subprocess.run(
        ["node", "--no-warnings", "--input-type=module", "-e", (HERE / "reference_workflows.mjs").read_text()],
        input=json.dumps(texts), capture_output=True, text=True, cwd=NODE, check=True,
    )  # fmt: skip
    return list(json.loads(done.stdout))


def mine(text: str) -> dict[str, list[object]]:
    document = Document(path="w.yml", text=text, root=compose(text, path="w.yml"))
    refused: list[Sighting] = []
    reader = Reader(document, refused.append)
    found: list[object] = []
    workflow = Workflow(document.root)
    for job in workflow.jobs:
        for step in job.steps:
            reader.check_condition(step.condition)
    for scalar in scalars(document.root):
        for start, end, _ in reader.expressions(scalar):
            inner = scalar.value[start + 3 : end - 2].strip()
            if inner.startswith("'") and end - start == len(scalar.value):
                continue  # a constant alone is no expression to them
            span = reader.origin(scalar).span(start, end)
            found.append([span.line, span.column, span.end_line, span.end_column])
    reader.check_syntax(document.root)
    return {"errors": [sighting.subject for sighting in refused], "expressions": found}


def workflow(run: str) -> str:
    return f"on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - id: x\n        run: {run}\n"


EXPRESSIONS = (HERE / "expressions" / "embedded.txt").read_text().splitlines()
LAYOUTS = [
    "|\n          echo {0}\n          done",
    "|-\n          first\n\n            {0}\n          last",
    ">-\n          echo\n          {0}",
    "echo {0}",
    "'q {0}'",
]


def documents() -> list[str]:
    made = []
    for expression in EXPRESSIONS:
        for layout in LAYOUTS:
            if layout.startswith("echo") and (": " in expression or expression.startswith(("'", '"', "}"))):
                continue
            body = expression.replace("'", "''") if layout.startswith("'") else expression
            made.append(workflow(layout.replace("{0}", body)))
    return made


@needs_node
def test_errors_and_places_agree_with_github() -> None:
    texts = documents()
    for text, theirs in zip(texts, reference(texts), strict=True):
        ours = mine(text)
        assert bool(ours["errors"]) == bool(theirs["errors"]), (text, ours, theirs)
        if not theirs["errors"] and "''" not in text:  # its columns ignore that a quote is written twice
            assert ours["expressions"] == theirs["expressions"], text


PIECES = st.sampled_from(["${{", "}}", " ", "github.ref", "'", "a", "}", "{", "$", "(", ")", "env.A", "&&", "\n", "é"])


@needs_node
@settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(scripts=st.lists(st.lists(PIECES, max_size=8).map("".join), min_size=60, max_size=100))
def test_what_is_refused_agrees_with_github(scripts: list[str]) -> None:
    texts = [workflow("|\n" + "".join(f"          x{line}\n" for line in script.split("\n"))) for script in scripts]
    for text, theirs in zip(texts, reference(texts), strict=True):
        assert bool(mine(text)["errors"]) == bool(theirs["errors"]), (text, theirs)


@needs_node
def test_conditions_agree_with_github() -> None:
    """An ``if`` without ``${{ }}`` is one expression: GitHub's parser reads it with them."""
    conditions = (HERE / "expressions" / "conditions.txt").read_text().splitlines()
    bare = [workflow("x") + f"        if: {json.dumps(condition)}\n" for condition in conditions]
    wrapped = [workflow("x") + f"        if: {json.dumps(f'${{{{ {condition} }}}}')}\n" for condition in conditions]
    for text, theirs in zip(bare, reference(wrapped), strict=True):
        assert bool(mine(text)["errors"]) == bool(theirs["errors"]), (text, mine(text), theirs)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"a \"$S\" b"', '"$S"'),
        (r'"a $S\u00e9"', "$Sé"),
        (r'"$S\\ b"', "$S\\"),
        (r'"a $S\x41 b"', "$SA"),
        ("'a $S'''", "$S'"),
        ("a $S b", "$S"),
        ('"a $S\n  b"', "$S"),
        ('"a $S\\\n  b"', "$S"),
        ("|\n  a $S\n", "$S"),
        (">\n  a $S\n  b\n", "$S"),
    ],
)
def test_a_span_ends_behind_the_escape_of_its_last_character(written: str, value: str) -> None:
    text = f"run: {written}\n"
    document = Document(path="w.yml", text=text, root=compose(text, path="w.yml"))
    scalar = next(one for one in scalars(document.root) if one.value != "run")
    start = scalar.value.index(value)
    refused: list[Sighting] = []
    span = Reader(document, refused.append).origin(scalar).span(start, start + len(value))
    assert span.line == span.end_line
    shown = text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]
    quote = written[0] if written[0] in "\"'" else '"'
    assert [one.value for one in scalars(compose(f"{quote}{shown}{quote}", path="w.yml"))] == [value]
