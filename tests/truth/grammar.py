"""Random bash scripts over one confidential variable.

Every script is valid, ends by itself, touches nothing outside its folder, and does the same in every run. Its
conditions are constant, so that whether it leaks is a fact about the script and not about the value.
"""

from __future__ import annotations

import shlex
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn, SearchStrategy

TAINTED = "ID"
VARIABLES = (TAINTED, "a", "b", "c")
LOCALS = ("a", "b", "c")
FUNCTIONS = ("f", "g")
FILES = ("one", "two")
DEPTH = 3

# Expansions of a scalar variable, with `_` for its name.
EXPANSIONS = (
    '"$_"', "$_", '"${_}"', '"p-${_}"', '"${_}-s"', "'$_'", '"\\$_"', '"${_:-none}"', '"${_:+set}"', '"${_#*.}"',
    '"${_##*.}"', '"${_%%.*}"', '"${_%.*}"', '"${#_}"', '"${_^^}"', '"${_,,}"', '"${_:0:4}"', '"${_: -12}"',
    '"${_/./-}"', '"${_//[a-z]/x}"', '"${_@Q}"', '"${_+x}"', '"${!_}"', '$"$_"',
)  # fmt: skip
PARAMETERS = ('"$1"', '"$2"', '"$@"', '"$*"', '"$#"', '"${@:2}"', '"$_"', '"$?"')
ARRAYS = ('"${A[0]}"', '"${A[1]}"', '"${A[@]}"', '"${A[*]}"', '"${#A[@]}"', '"${A[@]:1}"', '"${!A[@]}"')
BEGINNINGS = (
    "a=$ID",
    "b=$ID",
    'A=("$ID" k)',
    'A=(k "$ID")',
    'set -- "$ID" k',
    'set -- k "$ID"',
    'echo "$ID" > one.txt',
)
CONSTANTS = ("k", "--id", "'two words'", '""')
FILTERS = (
    "cat",
    "cut -d. -f1",
    "cut -d. -f4",
    "tr a-z A-Z",
    "head -n 1",
    "wc -c",
    "sha256sum",
    "rev",
    "sort",
    "sed s/^/x/",
)
PROGRAMS = ("tool", "/bin/echo", "command tool", "timeout 9 tool", "env tool")
BUILTINS = ("echo", ":", 'printf "%s\\n"', "command echo", "builtin echo")


def variables() -> SearchStrategy[str]:
    return st.sampled_from(VARIABLES)


@cache
def words(depth: int) -> SearchStrategy[str]:
    """A word of a command, which may run commands itself while ``depth`` allows it."""
    scalar = st.builds(lambda form, name: form.replace("_", name), st.sampled_from(EXPANSIONS), variables())
    whole = st.builds(lambda name: f'"${name}"', variables())
    simple = st.one_of(whole, scalar, scalar, st.sampled_from((*PARAMETERS, *ARRAYS)), st.sampled_from(CONSTANTS))
    if depth <= 0:
        return simple
    outputs = st.builds(lambda text: f'"$({text})"', printing(depth - 1))
    return st.one_of(simple, simple, simple, outputs)


@cache
def printing(depth: int) -> SearchStrategy[str]:
    """Commands that write something."""
    source = st.one_of(
        st.builds(lambda builtin, word: f"{builtin} {word}", st.sampled_from(("echo", 'printf "%s\\n"')), words(depth)),
        st.builds(lambda name: f"cat {name}.txt", st.sampled_from(FILES)),
        st.builds(lambda filter_, word: f"{filter_} <<< {word}", st.sampled_from(FILTERS), words(depth)),
    )
    piped = st.builds(lambda text, filter_: f"{text} | {filter_}", source, st.sampled_from(FILTERS))
    return st.one_of(source, piped)


@cache
def assignments(depth: int) -> SearchStrategy[str]:
    """Statements that give something to a variable, an array, the parameters or a file."""
    word, name = words(depth), st.sampled_from(LOCALS)
    forms: tuple[Callable[[str, str], str], ...] = (
        lambda name, word: f"{name}={word}",
        lambda name, word: f"{name}={word}",
        lambda name, word: f"{name}+={word}",
        lambda name, word: f"read -r {name} <<< {word}",
        lambda name, word: f"printf -v {name} %s {word}",
        lambda name, word: f"export {name}={word}",
        lambda name, word: f"declare {name}={word}",
        lambda name, word: f"unset {name}; : {word}",
        lambda name, word: f"{name}=$(echo {word})",
        lambda name, word: f": {word}; {name}=$_",
        lambda name, word: f"IFS=. read -r {name} _ <<< {word}",
        lambda name, word: f"IFS=. read -r _ _ _ {name} <<< {word}",
        lambda name, word: f"echo {word} | read -r {name} || :",
        lambda name, word: f"[[ {word} =~ [^.]*$ ]] && {name}=${{BASH_REMATCH[0]}} || :",
        lambda name, word: f"A[1]={word}; {name}=${{A[0]:-}}",
        lambda name, word: f"declare -n r={name}; r={word}; unset -n r",
    )
    scalar = st.builds(lambda form, name, word: form(name, word), st.sampled_from(forms), name, word)
    lists = st.builds(
        lambda form, first, second: form.format(first, second),
        st.sampled_from(("A=({} {})", "A+=({} {})", "set -- {} {}", "mapfile -t A < <(echo {}; echo {})")),
        word,
        word,
    )
    files = st.builds(
        lambda word, redirect, name: f"echo {word} {redirect} {name}.txt",
        word,
        st.sampled_from((">", ">>")),
        st.sampled_from(FILES),
    )
    return st.one_of(scalar, scalar, lists, files, st.just("shift || :"))


@cache
def uses(depth: int) -> SearchStrategy[str]:
    """Simple commands: programs and builtins that get words, or read them."""
    word = words(depth)
    program = st.builds(lambda program, word: f"{program} {word}", st.sampled_from(PROGRAMS), word)
    builtin = st.builds(lambda builtin, word: f"{builtin} {word}", st.sampled_from(BUILTINS), word)
    environment = st.builds(
        lambda form, name, word: form.format(name=name, word=word),
        st.sampled_from(("{name}={word} tool", '{name}={word} tool "${name}"', "env {name}={word} tool")),
        st.sampled_from(LOCALS),
        word,
    )
    reading = st.builds(
        lambda form, word: form.format(word),
        st.sampled_from(("wc -c <<< {}", "xargs tool <<< {}", "wc -c < <(echo {})", "cat <(/bin/echo {})")),
        word,
    )
    return st.one_of(program, program, builtin, environment, reading)


@cache
@st.composite
def compounds(draw: DrawFn, depth: int) -> str:
    """Statements that hold others."""
    body = draw(blocks(depth - 1))
    word = draw(words(depth - 1))
    name = draw(st.sampled_from(LOCALS))
    function = draw(st.sampled_from(FUNCTIONS))
    return draw(
        st.sampled_from(
            (
                f"for {name} in k {word}; do\n{body}\ndone",
                f"while read -r {name}; do\n{body}\ndone <<< {word}",
                f"echo {word} | while read -r {name}; do\n{body}\ndone",
                f"(\n{body}\n)",
                f"{{\n{body}\n}}",
                f"{{\n{body}\n}} > one.txt",
                f"{function}() {{\nlocal {name}={word}\n{body}\n}}\n{function} {word}",
                f"{function}() {{\n{body}\n}}\n{function} {word} k",
                f"{name}=$(\n{body}\n)",
                f"if true; then\n{body}\nelse\ntool {word}\nfi",
                f"if ! :; then\ntool {word}\nfi\n{body}",
                f"case k in\nk)\n{body}\n;;\n*) tool {word} ;;\nesac",
                f"true || tool {word}\n{body}",
                f"eval {shlex.quote(body)}",
                f"bash -c {shlex.quote(body)}",
                f"bash -c {shlex.quote(body)} _ {word}",
                f"export {name}\nbash -c {shlex.quote(body)}",
                f"trap {shlex.quote(body)} EXIT",
                f"cat <<END\n{word}\nEND\n{body}",
            )
        )
    )


@cache
def statements(depth: int) -> SearchStrategy[str]:
    simple = st.one_of(assignments(depth), uses(depth))
    return simple if depth <= 0 else st.one_of(simple, simple, simple, compounds(depth))


@cache
def blocks(depth: int) -> SearchStrategy[str]:
    return st.lists(statements(depth), min_size=1, max_size=3).map("\n".join)


@cache
def scripts() -> SearchStrategy[str]:
    """Whole scripts. They begin with the id in some places and end with a program, so that many touch it."""
    beginning = st.lists(st.sampled_from(BEGINNINGS), min_size=1, max_size=4, unique=True)
    body = st.lists(statements(DEPTH), min_size=0, max_size=4)
    ending = st.builds(lambda word: f"tool {word}", words(1))
    return st.builds(lambda first, rest, last: "\n".join([*first, *rest, last]), beginning, body, ending)
