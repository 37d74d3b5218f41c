"""``os.environ``, ``sys``, the working directory: what a process has around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    UNKNOWN_TEXT,
    Constant,
    Dictionary,
    Items,
    Named,
    Object,
    Opaque,
    Text,
    join_all,
    text,
)
from runner_e2e.lint.values import join

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Call, Evaluator
    from runner_e2e.lint.values import Value

__all__ = [
    "ATTRIBUTES",
    "FUNCTIONS",
    "METHODS",
    "environment_variable",
    "set_environment",
    "set_system",
    "variables_put_in",
]


# --- the environment


def environment_variable(interpreter: Evaluator, key: Object, node: ast.expr, default: Object | None) -> Object:
    """``os.environ[key]``; *default* (None: an exception) where it is not set."""
    names = interpreter.known_keys(key)
    environment = interpreter.process.environment()
    if names is None:  # any variable
        found = [Text(value) for value in environment.values() if value.taints]
        weak = interpreter.opaque(found)
        return join_all([UNKNOWN_TEXT, Text(interpreter.value(weak))] if found else [UNKNOWN_TEXT])
    values: list[Object] = []
    for name in names:
        value = interpreter.process.variable(str(name))
        if value is None:
            values.append(UNKNOWN_TEXT)
            values += [default] if default is not None else []
        else:
            read = interpreter.noted(Text(value), node, f"read from the environment variable {name}")
            # A value that is set but empty is returned as it is: the default takes no part.
            values.append(read)
    return join_all(values)


def set_environment(interpreter: Evaluator, key: Object, value: Object | None, node: ast.expr) -> None:
    """``os.environ[key] = value``; None removes the variable."""
    names = interpreter.known_keys(key) or ()
    for name in names:
        if value is None:
            interpreter.process.set_variable(str(name), None)
            continue
        noted = interpreter.noted(value, node, f"put into the environment as {name}")
        new = interpreter.value(noted)
        before = interpreter.process.variable(str(name)) if len(names) > 1 else None
        interpreter.process.set_variable(str(name), new if before is None else new | before)


def _getenv(interpreter: Evaluator, call: Call) -> Object:
    key = call.get(0, "key") or UNKNOWN_TEXT
    default = call.get(1, "default")
    return environment_variable(interpreter, key, call.node, default if default is not None else NONE)


def _environ_get(interpreter: Evaluator, _receiver: Object, call: Call) -> Object:
    return _getenv(interpreter, call)


def _environ_pop(interpreter: Evaluator, _receiver: Object, call: Call) -> Object:
    found = environment_variable(interpreter, call.get(0) or UNKNOWN_TEXT, call.node, call.get(1, "default"))
    set_environment(interpreter, call.get(0) or UNKNOWN_TEXT, None, call.node)
    return found


def _environ_setdefault(interpreter: Evaluator, _receiver: Object, call: Call) -> Object:
    key, value = call.get(0) or UNKNOWN_TEXT, call.get(1) or text("")
    for name in interpreter.known_keys(key) or ():
        if interpreter.process.variable(str(name)) is None:
            set_environment(interpreter, text(str(name)), value, call.node)
    return environment_variable(interpreter, key, call.node, value)


def _environ_update(interpreter: Evaluator, _receiver: Object, call: Call) -> Object:
    given = Dictionary()
    for one in call.arguments:
        given = interpreter.updated(given, one)
    entries = dict(given.entries)
    entries.update(call.keywords.items())
    for name, value in entries.items():
        set_environment(interpreter, text(str(name)), value, call.node)
    return NONE


def _environ_clear(interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    for name in interpreter.process.environment():
        interpreter.process.set_variable(name, None)
    return NONE


def _environ_copy(interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    return interpreter.new(interpreter.updated(Dictionary(), Named("os.environ")))


def _environ_items(interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    pairs = [
        Items((text(name), Text(value)), None, "tuple") for name, value in interpreter.process.environment().items()
    ]
    return interpreter.new(Items(tuple(pairs), Items((UNKNOWN_TEXT, UNKNOWN_TEXT), None, "tuple")))


def _environ_values(interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    values = tuple(Text(value) for value in interpreter.process.environment().values())
    return interpreter.new(Items(values, UNKNOWN_TEXT))


def _environ_keys(interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    return interpreter.new(Items(tuple(text(name) for name in interpreter.process.environment()), UNKNOWN_TEXT))


def _putenv(interpreter: Evaluator, call: Call) -> Object:
    set_environment(interpreter, call.get(0) or UNKNOWN_TEXT, call.get(1) or NOTHING, call.node)
    return NONE


def _unsetenv(interpreter: Evaluator, call: Call) -> Object:
    set_environment(interpreter, call.get(0) or UNKNOWN_TEXT, None, call.node)
    return NONE


# --- sys


def _argv(interpreter: Evaluator) -> Object:
    given = interpreter.lookup_system("argv")
    if given is not None:
        return given
    process = interpreter.process
    items: list[Object] = [Text(process.name)]
    rest: list[Object] = []
    for one in process.arguments:
        if one.many or rest:
            rest.append(Text(one.value))
        else:
            items.append(Text(one.value))
    made = interpreter.new(Items(tuple(items), join_all(rest) if rest else None))
    interpreter.set_system("argv", made)
    return made


def set_system(interpreter: Evaluator, name: str, value: Object) -> None:
    """``sys.name = value``."""
    if name == "argv":
        interpreter.set_system(name, value)
    elif name == "path":
        for item in interpreter.items(value).items:
            add_folder(interpreter, item)


def add_folder(interpreter: Evaluator, folder: Object) -> None:
    """Looks for modules in one more folder."""
    for known in interpreter.value(folder).constants or ():
        if known not in interpreter.folders and len(interpreter.folders) < 16:
            interpreter.folders.insert(0, known)


def _add_path(interpreter: Evaluator, call: Call) -> Object:
    for one in call.arguments:
        if isinstance(one, Text):
            add_folder(interpreter, one)
        elif not isinstance(one, Constant):
            for item in interpreter.items(one).items:
                add_folder(interpreter, item)
    return NONE


def _exit(interpreter: Evaluator, call: Call) -> Object:
    message = call.get(0)
    if message is not None and not isinstance(message, Constant):
        interpreter.process.print_error(interpreter.value(message), *interpreter.span(call.node))
    interpreter.leave()
    return NOTHING


# --- the working directory


def _getcwd(interpreter: Evaluator, _call: Call) -> Object:
    return Text(interpreter.process.directory)


def _path_cwd(interpreter: Evaluator, _call: Call) -> Object:
    return Text(interpreter.process.directory, "path")


def _chdir(interpreter: Evaluator, call: Call) -> Object:
    interpreter.process.change_directory(interpreter.value(call.get(0, "path") or UNKNOWN_TEXT))
    return NONE


def _expandvars(interpreter: Evaluator, call: Call) -> Object:
    return Text(variables_put_in(interpreter, interpreter.value(call.get(0) or UNKNOWN_TEXT)))


def variables_put_in(interpreter: Evaluator, value: Value) -> Value:
    """*value* with variables of the environment where it names them."""
    parts = [value]
    for name, content in interpreter.process.environment().items():
        if content.taints and any(isinstance(piece, str) and name in piece for piece in value.pieces()):
            parts.append(content.opaque())
    return join(parts)


_ENVIRON: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "get": _environ_get,
    "pop": _environ_pop,
    "setdefault": _environ_setdefault,
    "update": _environ_update,
    "clear": _environ_clear,
    "copy": _environ_copy,
    "items": _environ_items,
    "values": _environ_values,
    "keys": _environ_keys,
    "__getitem__": _environ_get,
}


def _of_environ(model: Callable[[Evaluator, Object, Call], Object]) -> Callable[[Evaluator, Call], Object]:
    return lambda interpreter, call: model(interpreter, Named("os.environ"), call)


FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    "os.getenv": _getenv,
    "os.putenv": _putenv,
    "os.unsetenv": _unsetenv,
    "os.getcwd": _getcwd,
    "os.getcwdu": _getcwd,
    "pathlib.Path.cwd": _path_cwd,
    "os.chdir": _chdir,
    "pytest.MonkeyPatch().setenv": _putenv,
    "pytest.MonkeyPatch().delenv": _unsetenv,
    "pytest.MonkeyPatch().chdir": _chdir,
    "contextlib.chdir": _chdir,
    "os.path.expandvars": _expandvars,
    "sys.exit": _exit,
    "os._exit": _exit,
    "builtins.exit": _exit,
    "builtins.quit": _exit,
    "os.abort": _exit,
    "sys.path.append": _add_path,
    "sys.path.extend": _add_path,
    "sys.path.insert": _add_path,
    "site.addsitedir": _add_path,
    **{f"os.environ.{name}": _of_environ(model) for name, model in _ENVIRON.items()},
}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {"environ.update": _environ_update}
ATTRIBUTES: Mapping[str, Callable[[Evaluator], Object]] = {
    "sys.argv": _argv,
    "sys.executable": lambda _: text("python3"),
    "os.sep": lambda _: text("/"),
    "os.linesep": lambda _: text("\n"),
    "os.pathsep": lambda _: text(":"),
    "os.devnull": lambda _: text("/dev/null"),
    "os.environb": lambda _: Named("os.environ"),
    "sys.platform": lambda _: UNKNOWN_TEXT,
    "os.name": lambda _: UNKNOWN_TEXT,
    "sys.version": lambda _: UNKNOWN_TEXT,
    "sys.version_info": lambda _: Opaque(),
    "string.ascii_letters": lambda _: UNKNOWN_TEXT,
    "string.digits": lambda _: UNKNOWN_TEXT,
    "subprocess.PIPE": lambda _: Constant(-1, "PIPE"),
    "subprocess.STDOUT": lambda _: Constant(-2, "STDOUT"),
    "subprocess.DEVNULL": lambda _: Constant(-3, "DEVNULL"),
    "asyncio.subprocess.PIPE": lambda _: Constant(-1, "PIPE"),
    "asyncio.subprocess.STDOUT": lambda _: Constant(-2, "STDOUT"),
    "asyncio.subprocess.DEVNULL": lambda _: Constant(-3, "DEVNULL"),
    "typing.TYPE_CHECKING": lambda _: Constant(False, "bool"),
}
