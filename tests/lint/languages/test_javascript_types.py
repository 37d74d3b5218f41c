"""TypeScript: types go, everything else stays where it is, and what remains is followed or told."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.languages.javascript.types import without_types
from runner_e2e.lint.linter import lint
from runner_e2e.lint.tree import errors, parse_javascript

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOW = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: npx tsx run.ts
        env: {CELL: "${{ inputs.selected-id }}"}
"""
IMPORT = 'import { execFileSync as start } from "node:child_process";\n'


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("const a: string = b;", "const a = b;"),
        ("let a: Map<string, string[]> = b;", "let a = b;"),
        ("const { a, b }: Options = c;", "const { a, b } = c;"),
        ("const a = b as string;", "const a = b;"),
        ("f(a as unknown as Record<string, number>, b);", "f(a, b);"),
        ("const a = { b: 1 } satisfies Options;", "const a = { b: 1 };"),
        ("a.b!.c(d!);", "a.b.c(d);"),
        ("if (a !== b && !c) d();", "if (a !== b && !c) d();"),
        ("function f(a: string, b?: number, ...c: string[]): void {}", "function f(a, b, ...c) {}"),
        ("function f({ a }: A = {}, [b]: B): a is C { return b; }", "function f({ a } = {}, [b]) { return b; }"),
        ("const f = async (a: A, b: (c: C) => void): Promise<D | null> => a;", "const f = async (a, b) => a;"),
        ("const f = <T,>(a: T): T => a;", "const f = (a) => a;"),
        ("const a = new Map<string, Set<number>>();", "const a = new Map();"),
        ("if (a < b || c > (d)) e();", "if (a < b || c > (d)) e();"),
        ("class A<T> extends B<T> implements C, D { e() {} }", "class A extends B { e() {} }"),
        ("class A { private b: C; static c?: D = 1; d = { e: 1 } }", "class A { b; static c = 1; d = { e: 1 } }"),
        ("class A { constructor(private a: B) {} b(): Promise<C> {} }", "class A { constructor(a) {} b() {} }"),
        ("abstract class A<T = {}> {\n  abstract b(): C;\n  d = 1; }", "abstract class A { d = 1; }"),
        ("function a(this: B, c: D) {}", "function a(c) {}"),
        ('import { a, type B, c as d, type E as F } from "g";', 'import { a, c as d, } from "g";'),
        ("try { a(); } catch (b: unknown) { c(); }", "try { a(); } catch (b) { c(); }"),
        ("switch (a) { case b: c(); default: d(); }", "switch (a) { case b: c(); default: d(); }"),
        ("const a = { b: c, d: { e: f } }, g = h ? i : j;", "const a = { b: c, d: { e: f } }, g = h ? i : j;"),
        ('import type { A } from "./a";\nimport { b as c } from "./b";', '\nimport { b as c } from "./b";'),
        ("export type { A };\nexport type B = { c: string };\ninterface D { e: string }\nf();", "\n;\n\nf();"),
        ('type A =\n  | "b"\n  | "c";\nd();', "\n\n;\nd();"),
        ("const a = `b: ${c}`; // d: string = e", "const a = `b: ${c}`; // d: string = e"),
    ],
)  # fmt: skip
def test_types_go(typed: str, plain: str) -> None:
    left = without_types(typed)
    assert len(left) == len(typed)
    assert "".join(left.split()) == "".join(plain.split())
    assert errors(parse_javascript(left.replace("abstract", ""))) == []


@given(st.text(alphabet=string.printable + "é文", max_size=80))
def test_everything_else_stays_where_it_is(text: str) -> None:
    left = without_types(text)
    assert len(left) == len(text)
    assert all(one in {other, " "} for one, other in zip(left, text, strict=True))
    assert left.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text", ["(", "(a:", "a<", "class A{", "/*", "`", "const a: ", "a|", "x as ", "(a)=>", "import type {\n"]
)
def test_what_is_never_closed_ends(text: str) -> None:
    assert len(without_types(text * 2_000)) == len(text) * 2_000


def test_a_bundle_stays_as_it_is() -> None:
    text = "let a: b;\n" * 20_000
    assert without_types(text) is text


def findings(root: Path, program: str) -> list[tuple[str, str, int, str]]:
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / ".github" / "workflows" / "w.yml").write_text(WORKFLOW)
    (root / "run.ts").write_text(IMPORT + program)
    found = lint([], current=root).findings
    return [(one.rule, one.span.path, one.span.line, one.confidence.name) for one in found if one.span.path == "run.ts"]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("const id: string = process.env.CELL!;\nstart('tool', [id]);\n", 3),
        ("function go(id: string): void {\n  start('tool', [id]);\n}\ngo(process.env.CELL as string);\n", 3),
        ("class A {\n  constructor(public id: B) {\n    start('tool', [id]);\n  }\n}\nnew A(process.env.CELL!);\n", 4),
    ],
)  # fmt: skip
def test_programs_with_types_are_followed(program: str, line: int, tmp_path: Path) -> None:
    assert findings(tmp_path, program) == [("confidential-argv", "run.ts", line, "HIGH")]


def test_what_is_no_javascript_is_told(tmp_path: Path) -> None:
    program = "enum Kind { One = 'one' }\nstart('tool', [process.env.CELL]);\n"
    assert findings(tmp_path, program) == [
        ("unanalysable-script", "run.ts", 2, "LOW"),
        ("confidential-argv", "run.ts", 3, "HIGH"),
    ]


def test_a_program_with_types_that_leaks_nothing(tmp_path: Path) -> None:
    program = "const id: string = process.env.CELL!;\nstart('tool', [String(id.length)], { input: id } as Options);\n"
    assert findings(tmp_path, program) == []


def test_a_module_is_named_as_the_file_that_is_made_of_it(tmp_path: Path) -> None:
    (tmp_path / "lib.ts").write_text(f"{IMPORT}export function go(id: string): void {{\n  start('tool', [id]);\n}}\n")
    assert findings(tmp_path, "import { go } from './lib.js';\ngo(process.env.CELL!);\n") == []
    report = lint([], current=tmp_path)
    assert [one.span.line for one in report.findings if one.span.path == "lib.ts"] == [3]
