"""``${{ }}`` in a script becomes a variable of the step: the runner writes the name into the file, not the value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.expression import Access, Call, Constant, Context, ExpressionError, parse, walk
from runner_e2e.lint.finding import Fix
from runner_e2e.lint.fixes.other_shells import read_in_cmd, read_in_powershell, read_in_python
from runner_e2e.lint.fixes.scripts import Program, form_of, script_at
from runner_e2e.lint.fixes.variables import entry_with, free_name, is_name, own_variables
from runner_e2e.lint.fixes.yaml_edits import insert_line, put, replace_part
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.ir import Inserted, Simple

if TYPE_CHECKING:
    from runner_e2e.lint.expression import Embedded, Expression
    from runner_e2e.lint.finding import Edit, Finding
    from runner_e2e.lint.fixes.scripts import StepScript
    from runner_e2e.lint.repository import Document, Repository

__all__ = ["Replacement", "as_variable", "repair"]

_READERS = (
    ("pwsh", read_in_powershell),
    ("powershell", read_in_powershell),
    ("cmd", read_in_cmd),
    ("python", read_in_python),
)

_OPEN_BRACE = re.compile(r"(?<!\$)\{[^\s;]*\Z")
# What a shell reads as more than the characters themselves, by what stands around them.
_SPECIAL = {
    "unquoted": re.compile(r"[\s\"'\\`$;&|<>(){}*?\[\]#~!]"),
    "double": re.compile(r"[\"\\`$]"),
    "single": re.compile(r"'"),
}


def repair(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001 - one signature
    """Puts the expression under ``env:`` of the step, and the variable in its place."""
    script = script_at(finding, document)
    if script is None:
        return None
    number = next((number for number, hole in enumerate(script.holes) if hole.start == script.index), None)
    if number is None:
        return None
    hole = script.holes[number]
    inner = script.text[hole.inner_start : hole.inner_end]
    try:
        expression = parse(inner)
    except ExpressionError:
        return None
    if script.shell.posix is None:
        return _elsewhere(script, number, expression)
    program = script.program()
    if program is None:
        return None
    if program.hole_at(hole.start) is None:
        return _in_comment(script, program, hole)
    return _with_variable(script, program, number, expression)


def _elsewhere(script: StepScript, number: int, expression: Expression) -> Fix | None:
    """The variable in a script of another shell than bash and sh."""
    read = next((read for prefix, read in _READERS if script.shell.language.startswith(prefix)), None)
    hole = script.holes[number]
    whole = script.text[hole.start : hole.end]
    chosen = _variable(script, expression, whole)
    if read is None or chosen is None:
        return None
    name, in_env = chosen
    found = read(script.text, [(each.start, each.end) for each in script.holes], number, name)
    if found is None:
        return None
    if found.comment:
        return _named(script, hole)
    edits = [replace_part(script.document, script.scalar, found.start, found.end, found.text)]
    if found.preamble:
        edits.append(insert_line(script.document, script.scalar, found.preamble))
    if not in_env:
        edits.append(put(script.document, script.step.node, ("env", name), whole, after="run"))
    made = tuple(edit for edit in edits if edit is not None)
    if len(made) < len(edits):
        return None
    title = f"read `{whole}` from the environment variable `{name}`"
    return Fix(title=title, safe=found.safe and _keeps(expression, found.quoting), edits=made)


def _in_comment(script: StepScript, program: Program, hole: Embedded) -> Fix | None:
    """A comment keeps the words of the expression, which say as much."""
    words = script.text[hole.inner_start : hole.inner_end].strip()
    before = form_of(program, hole=script.holes.index(hole))
    # An open quote changes every program, but for a comment.
    for text in ("'", words):
        changed = program.changed(hole.start, hole.end, text)
        if changed is None or form_of(changed) != before:
            return None
    return _named(script, hole)


def _named(script: StepScript, hole: Embedded) -> Fix | None:
    words = script.text[hole.inner_start : hole.inner_end].strip()
    edit = replace_part(script.document, script.scalar, hole.start, hole.end, words)
    title = f"name `{words}` in the comment without its value"
    return Fix(title=title, safe=True, edits=(edit,)) if edit is not None else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Replacement:
    """*text* for ``[start, end)`` of the script, which makes an expression a variable; *edit* adds it to ``env``."""

    name: str
    start: int
    end: int
    text: str
    safe: bool
    edit: Edit | None


def _with_variable(script: StepScript, program: Program, number: int, expression: Expression) -> Fix | None:
    found = as_variable(script, program, number, expression)
    if found is None:
        return None
    edit = replace_part(script.document, script.scalar, found.start, found.end, found.text)
    if edit is None:
        return None
    hole = script.holes[number]
    return Fix(
        title=f"read `{script.text[hole.start : hole.end]}` from the environment variable `{found.name}`",
        safe=found.safe,
        edits=(edit,) if found.edit is None else (edit, found.edit),
    )


def as_variable(script: StepScript, program: Program, number: int, expression: Expression) -> Replacement | None:
    """The variable in place of hole *number*, None where a shell would not read the same words."""
    hole = script.holes[number]
    whole = script.text[hole.start : hole.end]
    chosen = _variable(script, expression, whole)
    if chosen is None:
        return None
    name, in_env = chosen
    written = _written(program, number, name)
    if written is None:
        return None
    start, end, text, quoting = written
    edit = None if in_env else put(script.document, script.step.node, ("env", name), whole, after="run")
    if edit is None and not in_env:
        return None
    safe = _keeps(expression, quoting) and not (quoting == "unquoted" and _splits_otherwise(program, start))
    return Replacement(name=name, start=start, end=end, text=text, safe=safe, edit=edit)


def _variable(script: StepScript, expression: Expression, whole: str) -> tuple[str, bool] | None:
    """The variable to use, and whether the step has it already."""
    name = _environment_variable(expression)
    if name is not None and is_name(name) and not _assigns(script.text, name):
        return name, True
    if _reads(expression, "env") & (own_variables(script).keys() | {"*"}):
        return None  # `env` in the step's own `env` does not know what stands beside it
    if "\n" in whole:
        return None
    present = entry_with(script, whole)
    if present is not None and not _assigns(script.text, present):
        return present, True
    return free_name(script, whole), False


def _environment_variable(expression: Expression) -> str | None:
    """``NAME`` for the expression ``env.NAME``."""
    if isinstance(expression, Access) and isinstance(expression.object, Context) and expression.object.name == "env":
        index = expression.index
        return index.value if isinstance(index, Constant) and isinstance(index.value, str) else None
    return None


def _reads(expression: Expression, context: str) -> set[str]:
    """Names that the expression reads from *context*; ``*`` for those that are not known."""
    contexts = sum(1 for node in walk(expression) if isinstance(node, Context) and node.name == context)
    indices = [
        node.index
        for node in walk(expression)
        if isinstance(node, Access) and isinstance(node.object, Context) and node.object.name == context
    ]
    names = {each.value for each in indices if isinstance(each, Constant) and isinstance(each.value, str)}
    return names if len(names) == contexts == len(indices) else names | {"*"}


def _assigns(text: str, name: str) -> bool:
    """Whether the script may give *name* another value: it has the name where it does not read it."""
    return re.search(rf"(?<![$A-Za-z0-9_{{.]){name}(?![A-Za-z0-9_])", text) is not None


def _written(program: Program, number: int, name: str) -> tuple[int, int, str, str] | None:
    """Where to write what for the hole, so that the shell reads the same words; and how it is quoted there."""
    start, end = program.holes[number]
    part = program.hole_at(start)
    if part is None or _is_program(program, part):
        return None
    wanted = form_of(program, hole=number, variable=name)
    text = program.text
    braced = f"${{{name}}}"
    plain = f"${name}" if text[end : end + 1] in {"", " ", "\t", "\n", '"', ";", ")"} else braced
    candidates = [(start, end, plain, "double" if part.quoted else "unquoted")]
    if part.quoted:
        if text[start - 1 : start] == text[end : end + 1] == "'":
            candidates.append((start - 1, end + 1, f'"${name}"', "single"))
        candidates += [(start, end, f"'\"{braced}\"'", "single"), (start, end, f"'\"{braced}\"$'", "single")]
    for candidate in candidates:
        changed = program.changed(*candidate[:3])
        if changed is not None and form_of(changed) == wanted:
            return candidate
    return None


def _is_program(program: Program, part: Inserted) -> bool:
    """Whether the value itself says which command it is: then it is parsed, which a variable is not."""
    return any(
        isinstance(command, Simple) and command.words and command.words[0].parts[:1] == (part,) and not part.quoted
        for command in program.simple_commands
    )


def _splits_otherwise(program: Program, start: int) -> bool:
    """Whether words are not split at blanks, or a brace is expanded before the variable but after the text."""
    return "IFS" in program.text or _OPEN_BRACE.search(program.text[:start]) is not None


def _keeps(expression: Expression, quoting: str) -> bool:
    """Whether text that the expression itself holds means the same to the shell as part of a variable."""
    names = {id(node.index) for node in walk(expression) if isinstance(node, Access)}
    for node in walk(expression):
        if isinstance(node, Call) and node.function == "tojson" and quoting != "single":
            return False
        text = node.value if isinstance(node, Constant) and id(node) not in names else None
        if isinstance(text, str) and _SPECIAL[quoting].search(text):
            return False
    return True
