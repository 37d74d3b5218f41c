"""What the standard library does, as far as texts, files, environments and processes go.

Models are functions: of the interpreter and the call, for functions and classes by their full names; of the
interpreter, the receiver and the call, for methods by ``kind.name``. What has no model gives back what it is given.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.library import (
    arguments,
    containers,
    data,
    files,
    functions,
    output,
    processes,
    records,
    requests,
    strings,
    system,
)
from runner_e2e.lint.languages.python.library.foreign import setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Call, Evaluator
    from runner_e2e.lint.languages.python.objects import Object

__all__ = ["attribute", "function", "is_standard", "method", "names", "setting"]

_PARTS = (arguments, containers, data, files, functions, output, processes, records, requests, strings, system)
_FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    name: model for part in _PARTS for name, model in part.FUNCTIONS.items()
}
_METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    name: model for part in _PARTS for name, model in part.METHODS.items()
}


def function(name: str) -> Callable[[Evaluator, Call], Object] | None:
    """The model of a function or class."""
    return _FUNCTIONS.get(name)


def method(name: str) -> Callable[[Evaluator, Object, Call], Object] | None:
    """The model of a method; ``?.name`` is one of an object that is not known."""
    return _METHODS.get(name) or requests.of_client(name)


def attribute(interpreter: Evaluator, name: str) -> Object | None:
    """The value of a variable of a library; None when it is a function, a class or a module."""
    model = system.ATTRIBUTES.get(name)
    return model(interpreter) if model is not None else None


def names(module: str) -> tuple[str, ...]:
    """Public names of a module that has models: what ``from module import *`` binds."""
    found = (
        name.removeprefix(f"{module}.") for name in (*_FUNCTIONS, *system.ATTRIBUTES) if name.startswith(f"{module}.")
    )
    return tuple(dict.fromkeys(name.split(".")[0] for name in found))


def is_standard(module: str) -> bool:
    """Whether a module is one of the standard library: no file of the repository stands for it."""
    return module in sys.stdlib_module_names
