"""TypeScript: types go, everything else stays where it is, and what remains is followed or told."""

from __future__ import annotations

import string
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint import tree
from runner_e2e.lint.languages.javascript.syntax import read
from runner_e2e.lint.languages.javascript.types import parse_as_javascript
from runner_e2e.lint.linter import lint
from runner_e2e.lint.tree import Node, TooLargeError, errors, parse_javascript

WORKFLOW = """\
on: {{workflow_dispatch: {{inputs: {{selected-id: {{required: true}}}}}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: npx tsx {name}
        env: {{CELL: "${{{{ inputs.selected-id }}}}"}}
"""
IMPORT = 'import { execFileSync as start } from "node:child_process";\n'
TESTS = Path(__file__).parent.parent.parent
# What the two grammars say in different ways, and nothing here reads.
UNREAD = frozenset({"optional_chain", "member", "decorator"})

EMPTY = frozenset({"program", "formal_parameters", "this"})


def shape(node: Node, text: str) -> object:
    """A tree without the places of its nodes."""
    children = [child for child in node.children if child.kind not in UNREAD]
    leaf = "" if children or node.kind in EMPTY else text[node.start : node.end].strip().removesuffix(";")
    fields = {name: one.kind for name, one in node.fields.items() if name not in UNREAD}
    return node.kind, node.tokens, leaf, fields, [shape(child, text) for child in children]


PAIRS = [
    ("const a: string = b;", "const a = b;"),
    ("let a: Map<string, string[]> = b;", "let a = b;"),
    ("let a: string | undefined = b, c: number, d!: e;", "let a = b, c, d;"),
    ("const { a, b }: Options = c;", "const { a, b } = c;"),
    ("const { a: { b } }: { a: { b: string } } = c;", "const { a: { b } } = c;"),
    ("const a = b as string;", "const a = b;"),
    ("f(a as unknown as Record<string, number>, b);", "f(a, b);"),
    ("const a = { b: 1 } satisfies Options;", "const a = { b: 1 };"),
    ("export default { b: 1 } satisfies Options;", "export default { b: 1 };"),
    ("const a = ['b'] as const;", "const a = ['b'];"),
    ("a.b!.c(d!);", "a.b.c(d);"),
    ("a!++; b! += c!; (d as e) = f;", "a++; b += c; (d) = f;"),
    ("if (a !== b && !c) d();", "if (a !== b && !c) d();"),
    ("const a = `x${b as string}y${c!}`;", "const a = `x${b}y${c}`;"),
    ("function f(a: string, b?: number, ...c: string[]): void {}", "function f(a, b, ...c) {}"),
    ("function f({ a }: A = {}, [b]: B): a is C { return b; }", "function f({ a } = {}, [b]) { return b; }"),
    ("function f(a: unknown): asserts a is B {}", "function f(a) {}"),
    ("function f(a: string): void; function f(a?: any) {}", "function f(a) {}"),
    ("function a(this: B, c: D) {}", "function a(c) {}"),
    ("const f = async (a: A, b: (c: C) => void): Promise<D | null> => a;", "const f = async (a, b) => a;"),
    ("const f = (): { a: string } => ({ a: b });", "const f = () => ({ a: b });"),
    ("const f = <T,>(a: T): T => a;", "const f = (a) => a;"),
    ("const f = async <const T extends B>(a: T) => a;", "const f = async (a) => a;"),
    ("const a = b ? (c) : (d); e = b ? (c): d => f : g;", "const a = b ? (c) : (d); e = b ? (c) => f : g;"),
    ("const a = new Map<string, Set<number>>(); b<c>(d)<e>(f);", "const a = new Map(); b(d)(f);"),
    ("const a = b<string>; c?.<string>(d);", "const a = b; c?.(d);"),
    ("if (a < b || c > (d)) e();", "if (a < b || c > (d)) e();"),
    ("f(a < b, c > d); const x = a >> b, y = a >>> b;", "f(a < b, c > d); const x = a >> b, y = a >>> b;"),
    ("f(a<b, c>(d));", "f(a(d));"),
    ("const a = b as RegExp | null; /re/.test(c); d = e! / 2 / f;", "const a = b; /re/.test(c); d = e / 2 / f;"),
    ("class A<T> extends B<T> implements C, D { e() {} }", "class A extends B { e() {} }"),
    ("class A extends (b as any)<T> { }\nclass C implements D { }", "class A extends (b) { }\nclass C { }"),
    ("class A { private b: C; static c?: D = 1; d = { e: 1 } }", "class A { b; static c = 1; d = { e: 1 } }"),
    ("class A { declare b: C; [key: string]: D; readonly e = 1 }", "class A { e = 1 }"),
    ("class A { private b = 1\n  private ['c'] = 2\n  private *d() {} }", "class A { b = 1; ['c'] = 2; *d() {} }"),
    ("class A { accessor b: C = 1; }", "class A { b = 1; }"),
    ("class A { b(): Promise<C> {} get c(): D { return 1 } }", "class A { b() {} get c() { return 1 } }"),
    ("class A { private static async *b<T>(this: C): D {} }", "class A { static async *b() {} }"),
    ("class A { constructor(); constructor(a?: B) {} }", "class A { constructor(a) {} }"),
    (
        "class A { constructor(private readonly a: B = 1, b, override c?: D) { e(); } }",
        "class A { constructor(a = 1, b, c) { this.a = a; this.c = c; e(); } }",
    ),
    (
        "class A extends B { constructor(public a) { super(); e(); } }",
        "class A extends B { constructor(a) { super(); this.a = a; e(); } }",
    ),
    ("abstract class A<T = {}> {\n  abstract b(): C\n  abstract c: D\n  d = 1; }", "class A { d = 1; }"),
    ("export default abstract class A { };export abstract class B {}", "export default class A { };export class B {}"),
    ("@a() export class B { @c() d: E = 1; @f g(@h i: J) {} }", "@a() export class B { @c() d = 1; @f g(i) {} }"),
    ('import { a, type B, c as d, type E as F } from "g";', 'import { a, c as d, } from "g";'),
    ('import type { A } from "./a";\nimport { b as c } from "./b";', '\nimport { b as c } from "./b";'),
    ('import type A, { B } from "a"; import type C = require("c"); import type from "d";', 'import type from "d";'),
    ("import { type } from 'a'; type(b, { as: c });", "import { type } from 'a'; type(b, { as: c });"),
    ("import a = b.c.d;", "const a = b.c.d;"),
    ("export type { A };\nexport { type B, c };\ninterface D { e: string }\nf();", "\nexport { c };\n\nf();"),
    ("type A =\n  | 'b'\n  | 'c';\nd();", "d();"),
    ("type A<B> = B extends `${infer C}.${infer D}` ? [C, ...A<D>] : never;\nlet a: `x-${string}` = b;", "let a = b;"),
    ("type A = { -readonly [K in keyof T as `get${K}`]-?: T[K] };\nd();", "d();"),
    ("declare const a: B;\ndeclare module 'c' { let d: E; }\ndeclare global { interface F {} }\ng();", "g();"),
    ("export as namespace A;\nb();", "b();"),
    ("try { a(); } catch (b: unknown) { c(); }", "try { a(); } catch (b) { c(); }"),
    ("switch (a) { case b: c(); default: d(); }", "switch (a) { case b: c(); default: d(); }"),
    ("for (const [a, b] of Object.entries<string>(c as D)) {}", "for (const [a, b] of Object.entries(c)) {}"),
    ("const a = { b: c, d: { e: f } }, g = h ? i : j;", "const a = { b: c, d: { e: f } }, g = h ? i : j;"),
    ("const a = { async b(): Promise<void> {}, [c as string]: d! };", "const a = { async b() {}, [c]: d };"),
    ("const a = `b: ${c}`; // d: string = e", "const a = `b: ${c}`; // d: string = e"),
    ("#!/usr/bin/env node\nconst a: b = c;", "#!/usr/bin/env node\nconst a = c;"),
    # What the grammar does not know.
    ("using a: B = c();\nd as e;", "const a = c();\nd;"),
    ("class A { static accessor b = 1; override accessor c: D; }", "class A { static b = 1; c; }"),
    ("export type * from 'a';\nexport type * as b from 'c';\nd();", "d();"),
    ("class A<in out T, out U extends V> { }\ninterface B<in T> { }", "class A { }"),
    ("const a: Promise<import('./b').C[]> = d, e: import('f').G<h> = i;", "const a = d, e = i;"),
]  # fmt: skip


@pytest.mark.parametrize("jsx", [False, True])
@pytest.mark.parametrize(("typed", "plain"), PAIRS)
def test_types_go(typed: str, plain: str, *, jsx: bool) -> None:
    root, other = parse_as_javascript(typed, jsx=jsx), parse_javascript(plain)
    assert errors(root) == errors(other) == []
    assert shape(root, typed) == shape(other, plain)


@pytest.mark.parametrize(
    ("text", "plain", "jsx"),
    [
        ("const a = <string>b, c = <const>['d'];", "const a = b, c = ['d'];", False),
        ("const f = <T>(a: T) => a;", "const f = (a) => a;", False),
        ("const a = <b c={d as E}>{f!}</b>;", "const a = <b c={d}>{f}</b>;", True),
        ("const a = <B<string> c />;", "const a = <B c />;", True),
    ],
)
def test_angles_are_assertions_or_elements(text: str, plain: str, *, jsx: bool) -> None:
    root = parse_as_javascript(text, jsx=jsx)
    assert errors(root) == []
    assert shape(root, text) == shape(parse_javascript(plain), plain)
    assert errors(parse_as_javascript(text, jsx=not jsx)) or not jsx


@pytest.mark.parametrize("path", sorted(TESTS.glob("**/cases/**/*.js")) + sorted(TESTS.glob("lint/*.mjs")), ids=str)
def test_a_program_without_types_is_read_as_javascript(path: Path) -> None:
    text = path.read_text()
    assert shape(parse_as_javascript(text, jsx=True), text) == shape(parse_javascript(text), text)


def names(node: Node, text: str) -> list[str]:
    found = [text[node.start : node.end]] if node.kind == "identifier" else []
    return [*found, *(name for child in node.children for name in names(child, text))]


def test_everything_else_stays_where_it_is() -> None:
    text = "/* é文🎉 */ const é: Typ<'🎉'> = a as B;\nfunction 文(b: '🎉', ...c: D[]): E { f('🎉', b!); }"
    assert names(parse_as_javascript(text, jsx=False), text) == ["é", "a", "文", "b", "c", "f", "b"]


@given(st.text(alphabet=string.printable + "é文", max_size=80))
def test_every_text_has_a_tree(text: str) -> None:
    for jsx in (False, True):
        pending = [parse_as_javascript(text, jsx=jsx)]
        while pending:
            node = pending.pop()
            assert 0 <= node.start <= node.end <= len(text)
            pending += [*node.children, *node.fields.values()]


@pytest.mark.parametrize(
    "text", ["(", "(a:", "a<", "class A{", "/*", "`", "const a: ", "a|", "x as ", "(a)=>", "import type {\n", "a.b<c>("]
)
def test_what_is_never_closed_ends(text: str) -> None:
    assert tree.BROKEN in parse_as_javascript(text * 501, jsx=False).tokens


def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_MAX_SECONDS", 0.1)
    started = time.thread_time()
    with pytest.raises(TooLargeError):
        parse_as_javascript("a<b<c<d>>>" * 30_000, jsx=False)
    assert time.thread_time() - started < 10


@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        ("const a = <b>c;", "a.ts", "identifier"),
        ("const a = <b>c</b>;", "a.tsx", "jsx_element"),
        ("const a = <b>c</b>;", "a.js", "jsx_element"),
        ("const a = <b>c</b>;", "", "jsx_element"),
        ("const a = <b>c;", "", "identifier"),
        ("f(a<b, c>(d));", "a.mts", "identifier"),
        ("f(a<b, c>(d));", "a.mjs", "binary_expression"),
        ("f(a<b, c>(d));", "", "binary_expression"),
    ],
)
def test_the_ending_tells_the_language(text: str, path: str, kind: str) -> None:
    root, wrong = read(text, path)
    assert wrong == []
    inner = root.children[0].children[0]
    value = inner.get("value") if inner.kind == "variable_declarator" else inner.get("arguments")
    assert value is not None
    assert kind in {value.kind, *(child.kind for child in value.children), *(one.kind for one in _below(value))}


def _below(node: Node) -> list[Node]:
    return [inner for child in node.children for inner in (child, *_below(child))]


# --- followed


def findings(root: Path, program: str, name: str = "run.ts") -> list[tuple[str, str, int, str]]:
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / ".github" / "workflows" / "w.yml").write_text(WORKFLOW.format(name=name))
    (root / name).write_text(IMPORT + program)
    found = lint([], current=root).findings
    return [(one.rule, one.span.path, one.span.line, one.confidence.name) for one in found if one.span.path == name]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("const id: string = process.env.CELL!;\nstart('tool', [id]);\n", 3),
        ("function go(id: string): void {\n  start('tool', [id]);\n}\ngo(process.env.CELL as string);\n", 3),
        ("class A {\n  constructor(public id: B) {\n    start('tool', [id]);\n  }\n}\nnew A(process.env.CELL!);\n", 4),
        ("class A {\n  constructor(readonly b) {\n    start('t', [this.b]);\n  }\n}\nnew A(process.env.CELL!);\n", 4),
        ("enum Kind { One = 'one', Id = process.env.CELL! as any }\nstart('tool', [Kind.Id]);\n", 3),
        ("enum Kind { Id = process.env.CELL! as any, Same = Id }\nstart('tool', [Kind.Same]);\n", 3),
        ("namespace A {\n  export const id = process.env.CELL!;\n}\nstart('tool', [A.id]);\n", 5),
        ("namespace A.B {\n  export const id = process.env.CELL!;\n}\nstart('tool', [A.B.id]);\n", 5),
        ("namespace A { export const id = process.env.CELL!; }\nnamespace A {\n  start('tool', [id]);\n}\n", 4),
        ("export namespace A {\n  export function a(b: C) { start('tool', [b]); }\n}\nA.a(process.env.CELL!);\n", 3),
        ('import child = require("child_process");\nchild.spawnSync("tool", [process.env.CELL!]);\n', 3),
        ('import * as a from "child_process";\nimport go = a.spawnSync;\ngo("tool", [process.env.CELL!]);\n', 4),
        ("using id: Id = process.env.CELL as any;\nstart('tool', [id]);\n", 3),
        ("start<string>('tool', [<string>process.env.CELL]);\n", 2),
        ("if (a < b && c > (d)) {\n  start('tool', [process.env.CELL!] satisfies string[]);\n}\n", 3),
    ],
)  # fmt: skip
def test_programs_with_types_are_followed(program: str, line: int, tmp_path: Path) -> None:
    assert findings(tmp_path, program) == [("confidential-argv", "run.ts", line, "HIGH")]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("using id = process.env.CELL;\nstart('tool', [id]);\n", 3),
        ("class A { static id = process.env.CELL;\n  static {\n    start('tool', [this.id]);\n  }\n}\n", 4),
        ("class A { static id = process.env.CELL;\n  static { start('tool', [A.id]); }\n}\n", 3),
    ],
)
def test_what_javascript_has_of_late_is_followed(program: str, line: int, tmp_path: Path) -> None:
    for name in ("run.mjs", "run.mts"):
        (tmp_path / name).mkdir()
        assert findings(tmp_path / name, program, name) == [("confidential-argv", name, line, "HIGH")]


def test_members_of_enumerations_are_known(tmp_path: Path) -> None:
    program = (
        "enum Kind { None, One, Two = One * 4, Three, Text = 'x' }\n"
        "if (Kind.One !== 1 || Kind.Three !== 5 || Kind[4] !== 'Two' || Kind.Text !== 'x') {\n"
        "  start('tool', [process.env.CELL!]);\n}\n"
    )
    assert findings(tmp_path, program) == []


@pytest.mark.parametrize(
    "program",
    [
        "start('tool', [String(id.length)], { input: id } as Options);\n",
        "declare function leak(id: string): void;\ninterface start { id: string }\ntype A = typeof id;\n",
        "namespace A { const own = id; export const other = 1; }\nstart('tool', [A.own, A.other]);\n",
        "class A { constructor(private id: B, public other: B) {} }\nstart('tool', [new A(id, 'x').other]);\n",
    ],
)
def test_programs_with_types_that_leak_nothing(program: str, tmp_path: Path) -> None:
    assert findings(tmp_path, f"const id: string = process.env.CELL!;\n{program}") == []


def test_elements_are_followed(tmp_path: Path) -> None:
    program = (
        "function App({ id, children }: { id?: string }) {\n"
        "  start('tool', [id!]);\n"
        "  return <p title={start('other', [children])}>{id}</p>;\n}\n"
        "render(<App id={process.env.CELL!}>{process.env.CELL as string}<br /></App>);\n"
    )
    found = findings(tmp_path, program, "run.tsx")
    assert found[:2] == [
        ("confidential-argv", "run.tsx", 3, "HIGH"),
        ("confidential-argv", "run.tsx", 4, "HIGH"),
    ]
    assert "unanalysable-script" not in {rule for rule, *_ in found}


# --- told


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("const = ;\n", 2),
        ("class A { static [key: string]: B }\n", 2),
        ("let a: string;\nlet b: (c: d = e;\n", 3),
        ("const a = b as {{ c };\n", 2),
        ("interface A { b: = }\n", 2),
        ("if (a { b() }\n", 2),
        ("export import child = require('child_process');\n", 2),
    ],
)
def test_what_is_no_typescript_is_told(program: str, line: int, tmp_path: Path) -> None:
    found = findings(tmp_path, f"{program}start('tool', [process.env.CELL]);\n")
    assert ("unanalysable-script", "run.ts", line, "LOW") in found


def test_what_takes_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_MAX_SECONDS", 0.1)
    found = findings(tmp_path, "a<b<c<d>>>" * 2_000)
    assert found == [("unanalysable-script", "run.ts", 1, "LOW")]


# --- modules


@pytest.mark.parametrize(("name", "made"), [("lib.ts", "lib.js"), ("lib.tsx", "lib.jsx"), ("lib.mts", "lib.mjs")])
def test_a_module_is_named_as_the_file_that_is_made_of_it(name: str, made: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"{IMPORT}export function go(id: string): void {{\n  start('tool', [id]);\n}}\n")
    assert findings(tmp_path, f"import {{ go }} from './{made}';\ngo(process.env.CELL!);\n") == []
    report = lint([], current=tmp_path)
    assert [one.span.line for one in report.findings if one.span.path == name] == [3]


def test_a_module_may_be_one_value(tmp_path: Path) -> None:
    (tmp_path / "lib.cts").write_text("function go(id: string) { return { id }; }\nexport = go;\n")
    program = "import go = require('./lib.cjs');\nstart('tool', [go(process.env.CELL!).id]);\n"
    assert findings(tmp_path, program) == [("confidential-argv", "run.ts", 3, "HIGH")]
