"""Files: opened, read, written and removed; paths; temporary files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python import texts
from runner_e2e.lint.languages.python.evaluator import Call
from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    UNKNOWN_TEXT,
    Instance,
    Items,
    Object,
    Reference,
    Text,
    text,
)
from runner_e2e.lint.values import EMPTY, UNKNOWN, Hole, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Evaluator

__all__ = ["FUNCTIONS", "METHODS"]


def _path(interpreter: Evaluator, one: Object | None) -> Value:
    return interpreter.value(one) if one is not None else UNKNOWN


def _opened(interpreter: Evaluator, path: Object, mode: Object | None, call: Call) -> Object:
    known = interpreter.value(mode).constant if mode is not None else "r"
    known = "r" if known is None else known
    if "w" in known or "x" in known:
        _write(interpreter, _path(interpreter, path), EMPTY, call, append=False)
    return interpreter.new(Instance("file", ((" path", path), ("name", path), (" mode", text(known)))))


def _write(interpreter: Evaluator, path: Value, content: Value, call: Call, *, append: bool) -> None:
    start, end = interpreter.span(call.node)
    interpreter.process.write_file(path, content, append=append, start=start, end=end)


def _open(interpreter: Evaluator, call: Call) -> Object:
    path = call.get(0, "file") or UNKNOWN_TEXT
    return _opened(interpreter, path, call.get(1, "mode"), call)


def _os_open(interpreter: Evaluator, call: Call) -> Object:
    return _opened(interpreter, call.get(0, "path") or UNKNOWN_TEXT, None, call)


def _fdopen(_interpreter: Evaluator, call: Call) -> Object:
    return call.get(0) or NOTHING


def _os_write_file(interpreter: Evaluator, call: Call) -> Object:
    target = call.get(0) or NOTHING
    if isinstance(target, Reference):
        method = interpreter.attribute(target, "write", call.node)
        interpreter.call(method, Call(node=call.node, arguments=(call.get(1) or NOTHING,)))
    return NOTHING


# --- methods of open files


def _file(interpreter: Evaluator, receiver: Object) -> Instance:
    content = interpreter.content(receiver)
    return content if isinstance(content, Instance) else Instance("file")


def _read(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    content = _file(interpreter, receiver)
    ready = content.get(" read")
    if ready is not None:
        return ready
    path = content.get(" path")
    if path is None:
        return UNKNOWN_TEXT
    return Text(interpreter.process.read_file(interpreter.value(path)))


def _lines(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _read(interpreter, receiver, call)
    return interpreter.new(_line_items(interpreter, content))


def _line_items(interpreter: Evaluator, content: Object) -> Items:
    value = interpreter.value(content)
    items = texts.split(texts.stripped(value, "\n", "r"), "\n", -1)
    kept = tuple(Text(interpreter.value(item) + Value.literal("\n")) for item in items.items)
    return Items(kept, items.rest if items.rest is not None or value.constants is not None else UNKNOWN_TEXT)


def _read_line(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    return interpreter.element(_line_items(interpreter, _read(interpreter, receiver, call)))


def _write_method(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _file(interpreter, receiver)
    path = content.get(" path")
    if path is not None:
        _write(interpreter, interpreter.value(path), interpreter.value(call.get(0) or NOTHING), call, append=True)
    else:  # a text in memory
        before = content.get(" read")
        new = interpreter.value(before) if before is not None else EMPTY
        joined = Text(new + interpreter.value(call.get(0) or NOTHING))
        interpreter.put(receiver, Instance(content.kind, (*_without(content, " read"), (" read", joined))))
    return NOTHING


def _without(content: Instance, name: str) -> tuple[tuple[str, Object], ...]:
    return tuple(entry for entry in content.attributes if entry[0] != name)


def _write_lines(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    items = interpreter.items(call.get(0) or NOTHING)
    total = EMPTY
    for item in (*items.items, *([items.rest] if items.rest is not None else [])):
        total = total + interpreter.value(item)
    return _write_method(interpreter, receiver, Call(node=call.node, arguments=(Text(total),)))


def _string_io(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.new(Instance("file", ((" read", call.get(0) or text("")),)))


# --- paths


def _make_path(interpreter: Evaluator, call: Call) -> Object:
    if not call.arguments:
        return Text(Value.literal("."), "path")
    return Text(texts.path_joined([interpreter.value(one) for one in call.arguments]), "path")


def _join(interpreter: Evaluator, call: Call) -> Object:
    if call.rest is not None:
        return Text(interpreter.value(interpreter.opaque(call.everything())))
    return Text(texts.path_joined([interpreter.value(one) for one in call.arguments]))


def _join_method(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    parts = [interpreter.value(receiver), *(interpreter.value(one) for one in call.arguments)]
    return Text(texts.path_joined(parts), "path")


def _part(name: str) -> Callable[[Evaluator, Call], Object]:
    def model(interpreter: Evaluator, call: Call) -> Object:
        found = texts.path_part(_path(interpreter, call.get(0)), name)
        return Text(interpreter.value(found)) if found is not None else UNKNOWN_TEXT

    return model


def _split_path(interpreter: Evaluator, call: Call) -> Object:
    value = _path(interpreter, call.get(0))
    parts = [texts.path_part(value, name) or UNKNOWN_TEXT for name in ("parent", "name")]
    return Items(tuple(Text(interpreter.value(part)) for part in parts), None, "tuple")


def _split_extension(interpreter: Evaluator, call: Call) -> Object:
    value = _path(interpreter, call.get(0))
    parted = texts.partitioned(value, ".", last=True)
    return Items((Text(interpreter.value(parted.items[0])), Text(interpreter.value(parted.items[2]))), None, "tuple")


def _same(interpreter: Evaluator, call: Call) -> Object:
    """``abspath``, ``realpath``, ``normpath``: the same file."""
    return Text(_path(interpreter, call.get(0)))


def _same_method(_interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    return receiver


def _open_method(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    return _opened(interpreter, receiver, call.get(0, "mode"), call)


def _read_text(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    return Text(interpreter.process.read_file(interpreter.value(receiver)))


def _write_text(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = interpreter.value(call.get(0, "data") or NOTHING)
    _write(interpreter, interpreter.value(receiver), content, call, append=False)
    return NOTHING


def _renamed(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    target = call.get(0, "target") or UNKNOWN_TEXT
    _copied(interpreter, interpreter.value(receiver), interpreter.value(target), call, moves=True)
    return target


def _copied(interpreter: Evaluator, source: Value, target: Value, call: Call, *, moves: bool) -> None:
    content = interpreter.process.read_file(source)
    _write(interpreter, target, content, call, append=False)
    if moves:
        interpreter.process.remove_file(source)


def _copy(*, moves: bool) -> Callable[[Evaluator, Call], Object]:
    def model(interpreter: Evaluator, call: Call) -> Object:
        source, target = call.get(0, "src") or UNKNOWN_TEXT, call.get(1, "dst") or UNKNOWN_TEXT
        _copied(interpreter, interpreter.value(source), interpreter.value(target), call, moves=moves)
        return target

    return model


def _copy_stream(interpreter: Evaluator, call: Call) -> Object:
    """``shutil.copyfileobj(source, target)``."""
    source, target = call.get(0) or NOTHING, call.get(1) or NOTHING
    content = interpreter.call(interpreter.attribute(source, "read", call.node), Call(node=call.node))
    method = interpreter.attribute(target, "write", call.node)
    return interpreter.call(method, Call(node=call.node, arguments=(content,)))


def _remove(interpreter: Evaluator, call: Call) -> Object:
    interpreter.process.remove_file(_path(interpreter, call.get(0)))
    return NONE


def _remove_method(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    interpreter.process.remove_file(interpreter.value(receiver))
    return NONE


def _touch(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    """``mkdir`` and ``touch``: the name is there to be found."""
    _write(interpreter, interpreter.value(receiver), EMPTY, call, append=True)
    return NONE


def _make_directory(interpreter: Evaluator, call: Call) -> Object:
    _write(interpreter, _path(interpreter, call.get(0)), EMPTY, call, append=True)
    return NONE


def _listed(interpreter: Evaluator, _call: Call) -> Object:
    names = interpreter.process.file_names()
    return interpreter.new(Items((), Text(names if names.taints else UNKNOWN)))


def _listed_method(interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    names = interpreter.process.file_names()
    return interpreter.new(Items((), Text(names if names.taints else UNKNOWN, "path")))


def _named(change: str) -> Callable[[Evaluator, Object, Call], Object]:
    """``with_name`` and ``with_suffix``."""

    def model(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
        value = interpreter.value(receiver)
        given = interpreter.value(call.get(0) or NOTHING)
        parent = interpreter.value(texts.path_part(value, "parent") or UNKNOWN_TEXT)
        if change == "name":
            return Text(texts.path_joined([parent, given]), "path")
        stem = interpreter.value(texts.path_part(value, "stem") or UNKNOWN_TEXT)
        return Text(texts.path_joined([parent, stem + given]), "path")

    return model


def _fact(_interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    return NOTHING


def _no_text(_interpreter: Evaluator, _call: Call) -> Object:
    return NOTHING


# --- temporary files


def _temporary(interpreter: Evaluator, what: str) -> Value:
    return Value((("/tmp/", Hole(frozenset(), interpreter.process.identity(what))),))  # noqa: S108


def _temporary_file(interpreter: Evaluator, call: Call) -> Object:
    path = Text(_named_by_call(interpreter, call))
    return interpreter.new(Instance("file", ((" path", path), ("name", path))))


def _named_by_call(interpreter: Evaluator, call: Call) -> Value:
    total = _temporary(interpreter, "temporary file")
    for name in ("prefix", "suffix"):
        part = call.keywords.get(name)
        if part is not None and part != NONE:
            total = total + interpreter.value(part)
    return total


def _temporary_directory(interpreter: Evaluator, call: Call) -> Object:
    path = Text(_named_by_call(interpreter, call))
    return interpreter.new(Instance("directory", ((" entered", path), ("name", path), (" text", path))))


def _mkdtemp(interpreter: Evaluator, call: Call) -> Object:
    return Text(_named_by_call(interpreter, call))


def _mkstemp(interpreter: Evaluator, call: Call) -> Object:
    path = Text(_named_by_call(interpreter, call))
    handle = interpreter.new(Instance("file", ((" path", path), ("name", path))))
    return Items((handle, path), None, "tuple")


def _which(interpreter: Evaluator, call: Call) -> Object:
    """``shutil.which``: the program of that name."""
    return Text(_path(interpreter, call.get(0)))


_PATH_CLASSES = ("Path", "PurePath", "PosixPath", "PurePosixPath", "WindowsPath")
_SAME = ("resolve", "absolute", "expanduser", "as_posix", "__str__", "__fspath__", "relative_to", "cleandoc")

FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    "builtins.open": _open,
    "io.open": _open,
    "codecs.open": _open,
    "gzip.open": _open,
    "os.open": _os_open,
    "os.fdopen": _fdopen,
    "io.StringIO": _string_io,
    "io.BytesIO": _string_io,
    **{f"pathlib.{name}": _make_path for name in _PATH_CLASSES},
    "os.path.join": _join,
    "posixpath.join": _join,
    "os.path.basename": _part("name"),
    "os.path.dirname": _part("parent"),
    "os.path.split": _split_path,
    "os.path.splitext": _split_extension,
    **{f"os.path.{name}": _same for name in ("abspath", "realpath", "normpath", "expanduser", "relpath", "normcase")},
    **{f"os.path.{name}": _no_text for name in ("exists", "isfile", "isdir", "getsize", "getmtime", "isabs", "islink")},
    "os.rename": _copy(moves=True),
    "os.replace": _copy(moves=True),
    "os.link": _copy(moves=False),
    "os.symlink": _copy(moves=False),
    "shutil.copy": _copy(moves=False),
    "shutil.copy2": _copy(moves=False),
    "shutil.copyfile": _copy(moves=False),
    "shutil.move": _copy(moves=True),
    "shutil.copyfileobj": _copy_stream,
    "shutil.which": _which,
    "os.remove": _remove,
    "os.unlink": _remove,
    "os.rmdir": _remove,
    "shutil.rmtree": _remove,
    "os.mkdir": _make_directory,
    "os.makedirs": _make_directory,
    "os.listdir": _listed,
    "os.scandir": _listed,
    "os.walk": _listed,
    "glob.glob": _listed,
    "glob.iglob": _listed,
    "tempfile.NamedTemporaryFile": _temporary_file,
    "tempfile.TemporaryFile": _temporary_file,
    "tempfile.SpooledTemporaryFile": _temporary_file,
    "tempfile.TemporaryDirectory": _temporary_directory,
    "tempfile.mkdtemp": _mkdtemp,
    "tempfile.mkstemp": _mkstemp,
    "tempfile.gettempdir": lambda _interpreter, _call: text("/tmp"),  # noqa: S108
}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "file.read": _read,
    "file.getvalue": _read,
    "file.readlines": _lines,
    "file.__iter__": _lines,
    "file.readline": _read_line,
    "file.write": _write_method,
    "file.writelines": _write_lines,
    "path.open": _open_method,
    "path.read_text": _read_text,
    "path.read_bytes": _read_text,
    "path.write_text": _write_text,
    "path.write_bytes": _write_text,
    "path.joinpath": _join_method,
    "path.rename": _renamed,
    "path.replace": _renamed,
    "path.unlink": _remove_method,
    "path.rmdir": _remove_method,
    "path.mkdir": _touch,
    "path.touch": _touch,
    "path.glob": _listed_method,
    "path.rglob": _listed_method,
    "path.iterdir": _listed_method,
    "path.with_name": _named("name"),
    "path.with_suffix": _named("suffix"),
    "path.with_stem": _named("suffix"),
    **{f"path.{name}": _same_method for name in _SAME},
    **{f"path.{name}": _fact for name in ("exists", "is_file", "is_dir", "stat", "samefile", "match", "chmod")},
}
