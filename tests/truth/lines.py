"""From an exec to the line that caused it: the recorder's notes joined with the files of the case."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import tree_sitter
import tree_sitter_bash
from tests.truth.case import MARKER, Case, CaseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.truth.trace import Exec
    from tests.truth.verdict import FoundBy

WORKSPACE = "/hostexecutor/"
RUN = re.compile(r"^(?P<indent>[ -]*)run:[ ]+(?:&\S+[ ]+)?(?P<rest>\S.*)$")
BLOCK = re.compile(r"\|[-+]?(?P<indent>[1-9]?)[-+]?[ ]*(?:#.*)?")
MARKED = re.compile(rf"{MARKER}(?:: [\w./-]+)?[\"',]*\s*$")  # a quote may follow: scripts in package.json
# Closing braces inside a string of the expression do not end it.
EXPRESSION = re.compile(r"\$\{\{(?:'[^']*'|[^'])*?\}\}")


@dataclass(frozen=True, kw_only=True)
class Note:
    """The recorder's word on one exec: ``source`` is the script's path ('' inside ``-c``), ``line`` counts from 1."""

    pid: int
    source: str
    line: int
    argv: tuple[str, ...]
    language: FoundBy


@dataclass(frozen=True, kw_only=True)
class Notes:
    execs: tuple[Note, ...]
    scripts: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Place:
    file: str
    line: int
    end_line: int
    found_by: FoundBy


def read_notes(record: bytes) -> Notes:
    """Reads what ``recorder/`` wrote."""
    execs, scripts = [], {}
    while record:
        length, record = record.split(b"\0", 1)
        fields = [field.decode(errors="surrogateescape") for field in record[: int(length)].split(b"\0")[:-1]]
        record = record[int(length) :]
        if fields[0] == "script":
            scripts[fields[2]] = fields[3]
        else:
            _, pid, _, source, line, *argv = fields
            language: FoundBy = "python" if source.endswith(".py") else "bash"
            execs.append(Note(pid=int(pid), source=source, line=int(line), argv=tuple(argv), language=language))
    return Notes(execs=tuple(execs), scripts=scripts)


def place(witness: Exec, execs: Sequence[Exec], notes: Notes, case: Case) -> Place:
    """Where the command stands that made ``witness``."""
    for ancestor in lineage(witness, execs):
        for note in notes.execs:
            if note.argv != ancestor.argv or note.pid not in {ancestor.pid, ancestor.parent}:
                continue
            found = place_of_note(note, notes, case) if note.source else None
            if found is None:
                continue
            if ancestor is witness:
                return found
            return marked(witness, case) or Place(
                file=found.file, line=found.line, end_line=found.end_line, found_by="outer"
            )
    marker = marked(witness, case)
    if marker:
        return marker
    raise CaseError(
        f"{case.path}: execution started {witness.argv!r}, and nothing tells its line; "
        f"end the line that names the program with {MARKER}"
    )


def lineage(witness: Exec, execs: Sequence[Exec]) -> Iterator[Exec]:
    """The exec itself, then what its process was before, then its parent's exec at that time, and so on."""
    current: Exec | None = witness
    while current is not None:
        yield current
        now = current
        earlier = [one for one in execs if one.order < now.order and one.pid in {now.pid, now.parent}]
        same = [one for one in earlier if one.pid == now.pid]
        candidates = same or earlier
        current = candidates[-1] if candidates else None


def marked(witness: Exec, case: Case) -> Place | None:
    """The line its author marked, when the program of the witness is named in it (or behind the marker)."""
    program = PurePosixPath(witness.program).name
    found = [
        Place(file=name, line=number, end_line=number, found_by="marker")
        for name, path in case.files().items()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if MARKED.search(line) and re.search(rf"(?<![\w-]){re.escape(program)}(?![\w-])", line)
    ]
    if len(found) > 1:
        raise CaseError(f"{case.path}: {len(found)} marked lines name {program}; a witness must have one")
    return found[0] if found else None


def place_of_note(note: Note, notes: Notes, case: Case) -> Place | None:
    """The note's line as a line of a file of the case."""
    files = case.files()
    name = note.source.split(WORKSPACE, 1)[1] if WORKSPACE in note.source else ""
    if name in files:
        text = files[name].read_text()
        span = lines_of_note(text, note)
        return Place(file=name, line=span[0], end_line=span[1], found_by=note.language) if span else None
    script = notes.scripts.get(note.source)
    if script is None:
        return None
    span = lines_of_note(script, note)
    if span is None:
        return None
    blocks = [found for name, path in files.items() if (found := block_lines(name, path.read_text(), script))]
    if len(blocks) > 1:
        raise CaseError(f"{case.path}: two files hold the script that leaks; make them differ")
    if not blocks:
        return None
    file, lines = blocks[0]
    return Place(file=file, line=lines[span[0]], end_line=lines[span[1]], found_by=note.language)


def lines_of_note(text: str, note: Note) -> tuple[int, int] | None:
    """First and last line of the command, or of the statement of Python, that the note names."""
    return command_lines(text, note) if note.language == "bash" else statement_lines(text, note.line)


def statement_lines(text: str, line: int) -> tuple[int, int]:
    """First and last line of the smallest statement of a Python program that holds *line*; a compound one's head."""
    found: list[tuple[int, int]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.end_lineno is not None:
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body and body[0].lineno > node.lineno else node.end_lineno
            found.append((node.lineno, end))
    around = [span for span in found if span[0] <= line <= span[1]]
    return min(around, key=lambda span: span[1] - span[0], default=(line, line))


def block_lines(name: str, text: str, script: str) -> tuple[str, dict[int, int]] | None:
    """For the `run:` of a file that became ``script``: line of the script -> line of the file."""
    lead = len(script) - len(script.lstrip("\n"))
    body = script.strip("\n")
    found = []
    for start, lines in run_blocks(text):
        pattern, places = block_pattern(lines, start)
        match = re.fullmatch(pattern, body)
        if match:
            found.append(expand(match, places, lead))
    if len(found) > 1:
        raise CaseError(f"{name}: {len(found)} steps have the script that leaks; make their texts differ")
    return (name, found[0]) if found else None


def run_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """First line (1-based) and lines of every literal block and one-line value of a `run:` key."""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        match = RUN.match(line)
        if not match:
            continue
        header = BLOCK.fullmatch(match["rest"])
        if not header:
            if not match["rest"].startswith((">", "*", '"', "'")):
                yield index + 1, [re.sub(r"\s+#.*", "", match["rest"])]
            continue
        key, block = len(match["indent"]), []
        for following in lines[index + 1 :]:
            if following.strip() and len(following) - len(following.lstrip(" ")) <= key:
                break
            block.append(following)
        least = min((len(one) - len(one.lstrip(" ")) for one in block if one.strip()), default=0)
        indent = key + int(header["indent"]) if header["indent"] else least
        while block and not block[-1].strip():
            block.pop()
        yield index + 2, [one[indent:] for one in block]


def block_pattern(lines: list[str], start: int) -> tuple[str, list[int]]:
    """A pattern with one group a line, expressions matching any text, and the file line of each group."""
    parts = []
    for line in lines:
        masked = EXPRESSION.split(line)
        parts.append("(" + r"[\s\S]*?".join(re.escape(part) for part in masked) + ")")
    return "\n".join(parts), list(range(start, start + len(lines)))


def expand(match: re.Match[str], places: list[int], lead: int) -> dict[int, int]:
    """Script line -> file line; a value of several lines stands on the one line that it was written in."""
    lines, number = {}, lead + 1
    for group, place_ in enumerate(places, start=1):
        for _ in range(match[group].count("\n") + 1):
            lines[number] = place_
            number += 1
    return lines


def command_lines(script: str, note: Note) -> tuple[int, int] | None:
    """First and last line of the command that bash was at, None when no command there names the program.

    bash counts a command that is continued over lines, or that stands in a substitution, somewhere inside its
    statement. The statements on its line are looked up in the parsed text, and in them the command that names the
    program.
    """
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    root = parser.parse(script.encode()).root_node
    row = note.line - 1
    statements = [child for child in root.children if child.start_point.row <= row <= child.end_point.row]
    within = [node for child in statements for node in descendants(child) if node.type == "command"]
    commands = [node for node in within if names(node, note.argv[0])] or [
        node for node in within if names(node, "eval")
    ]
    here = [node for node in commands if node.start_point.row <= row <= last_row(node)]
    starting = [node for node in here if node.start_point.row == row]
    above = [node for node in commands if node.start_point.row < row][-1:]
    chosen = starting or here or (commands if len(commands) == 1 else above)
    if not chosen:
        return None
    node = chosen[-1]
    return node.start_point.row + 1, last_row(node) + 1


def last_row(node: tree_sitter.Node) -> int:
    """The last row of a command; one that ends with a newline does not reach into the next row."""
    return node.end_point.row - (1 if node.end_point.column == 0 and node.end_point.row > node.start_point.row else 0)


def descendants(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    yield node
    for child in node.children:
        yield from descendants(child)


def names(command: tree_sitter.Node, program: str) -> bool:
    """Whether a word of the command is the program, or its name is only known at run time."""
    words = [(child.text or b"").decode().strip("'\"") for child in command.children]
    name = command.child_by_field_name("name")
    runtime = name is not None and "$" in (name.text or b"").decode()
    return runtime or any(PurePosixPath(word).name == PurePosixPath(program).name for word in words if word)
