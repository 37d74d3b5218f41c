"""Libraries that are not followed: what their objects remember, which variables they read, what they start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.library.system import environment_variable
from runner_e2e.lint.languages.python.objects import NOTHING, Class, Instance, Named, Object, Opaque, Text, text
from runner_e2e.lint.values import Confidence, Value

if TYPE_CHECKING:
    import ast

    from runner_e2e.lint.languages.python.evaluator import Call, Evaluator

__all__ = ["absorb", "command_confidence", "make", "setting", "variables_named"]

_GIVEN = " given"
_REMOTE = frozenset({"asyncssh", "docker", "fabric", "nox", "paramiko", "podman", "pssh", "testinfra"})
_LOCAL = frozenset(
    {"anyio", "delegator", "envoy", "invoke", "pexpect", "psutil", "ptyprocess", "sarge", "shellous", "trio"}
)
_PROGRAMS = frozenset({"sh", "plumbum"})
"""Those whose objects are the programs: calling one starts it."""
_PROCESSES = _REMOTE | _LOCAL | _PROGRAMS
"""Libraries that exist to start programs, here or elsewhere."""
_READERS = frozenset(["decouple", "dynaconf", "environ", "environs", "envparse", "prettyconf", "starlette"])
"""Libraries that read the environment by name."""
_STARTS = re.compile(
    r"(?:run|call|check_call|check_output|execute|exec|exec_run|exec_command|exec_create|system|shell|spawn\w*|popen"
    r"|launch|sudo|local|command|sh|bash|run_command|run_cmd|run_process|open_process|capture|create_process)",
    re.IGNORECASE,
)
_CLASS = re.compile(r"_*[A-Z]\w*[a-z]\w*")


def make(interpreter: Evaluator, name: str, given: Object) -> Object:
    """What a call of *name* gives back: for the name of a class, an object that remembers what it is *given*."""
    root, _, last = name.rpartition(".")
    if root.partition(".")[0] in _PROCESSES - _PROGRAMS or (root and _CLASS.fullmatch(last)):
        return interpreter.new(Instance(f"?{name}", ((_GIVEN, given),)))
    return given


def absorb(interpreter: Evaluator, receiver: Object, given: Object) -> None:
    """What a method of *receiver* is *given* may be in what its other methods give back."""
    content = interpreter.content(receiver)
    taints = interpreter.taints(given)
    if (
        not isinstance(content, Instance)
        or not taints
        or not (isinstance(content.kind, int) or content.kind[:1] == "?")
    ):
        return
    attributes = dict(content.attributes)
    before = attributes.get(_GIVEN, NOTHING)
    attributes[_GIVEN] = Opaque(Value.of(interpreter.taints(before) | taints).taints)
    interpreter.put(receiver, Instance(content.kind, tuple(attributes.items())))


def variables_named(interpreter: Evaluator, name: str, call: Call) -> Object:
    """The variables of the environment that a call of *name* names in its arguments: it may read them."""
    root = name.lstrip("?").partition(".")[0]
    if not root or (root == "builtins"):
        return NOTHING
    names = [one.value.constant for one in call.everything() if isinstance(one, Text)]
    confidence = Confidence.MEDIUM if root in _READERS else Confidence.LOW
    if Named("os.environ") in call.everything():
        names, confidence = list(interpreter.process.environment()), Confidence.LOW
    found = [interpreter.process.variable(each) for each in names if each]
    return interpreter.opaque([Text(one) for one in found if one is not None], confidence)


def setting(interpreter: Evaluator, number: int, name: str, node: ast.expr) -> Object | None:
    """A field without a value of a pydantic ``BaseSettings``: the variable of its name, in any case."""
    cell = interpreter.memory.cell(number)
    bases = cell.bases if isinstance(cell, Class) else ()
    if not any(isinstance(base, Named) and base.name.endswith(".BaseSettings") for base in bases):
        return None
    wanted = name.lower()
    names = interpreter.process.environment()
    same = [one for one in names if one.lower() == wanted]
    same += [one for one in names if one.lower().endswith(f"_{wanted}")]
    return environment_variable(interpreter, text(same[0]), node, None) if same else None


def command_confidence(receiver: Object, name: str) -> Confidence | None:
    """How sure it is that a call of *name* starts a program; None: it does not look like that."""
    if name.startswith("str."):
        return None
    root, last = name.lstrip("?").partition(".")[0], name.rpartition(".")[2]
    if root in _PROGRAMS and (isinstance(receiver, Named) or name.startswith("?")):
        return Confidence.MEDIUM
    if _STARTS.fullmatch(last):
        return Confidence.MEDIUM if root in _PROCESSES else Confidence.LOW
    return None
