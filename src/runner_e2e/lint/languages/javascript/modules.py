"""Modules of Node.js and of the Actions toolkit, as far as values pass through them."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.builtins import buffer, function, module_of, object_of, pure
from runner_e2e.lint.languages.javascript.octokit import MODULES as OCTOKIT
from runner_e2e.lint.languages.javascript.requests import MODULES as REQUESTS
from runner_e2e.lint.languages.javascript.starting import MODULES as STARTING
from runner_e2e.lint.languages.javascript.starting import promisified
from runner_e2e.lint.languages.javascript.testing import MODULES as TESTING
from runner_e2e.lint.languages.javascript.toolkit import MODULES as TOOLKIT
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    BOOLEAN,
    NULL,
    UNDEFINED,
    Js,
    Native,
    Thing,
    literal,
    of_text,
    of_thing,
    text_of,
)
from runner_e2e.lint.languages.pieces import joined, split_at
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.languages.javascript.machine import Call

__all__ = ["GLOBAL", "HARMLESS", "MODULES"]


# --- path


def _joined(call: Call) -> Js:
    """``path.join`` and ``path.resolve``."""
    resolves = call.name.endswith("resolve")
    parts = [text_of(one.value).opaque() if one.many else text_of(one.value) for one in call.arguments]
    constants = [part.constant for part in parts]
    known = [text for text in constants if text is not None]
    if len(known) == len(parts):
        total = posixpath.join(*known) if resolves and known else "/".join(text for text in known if text)
        return literal(posixpath.normpath(total) if total else ".")
    value = EMPTY
    for index, part in enumerate(parts):
        value = value + (Value.literal("/") if index and value != EMPTY else EMPTY) + part
    return of_text(value)


def _base_name(call: Call) -> Js:
    value, suffix = call.text(0), call.arg(1).constant or ""
    constants = value.constants
    if constants is not None and len(constants) == 1:
        name = posixpath.basename(constants[0].rstrip("/"))
        return literal(name.removesuffix(suffix) if suffix and name != suffix else name)
    parts = split_at(value, "/")
    return of_text(parts[-1] if parts else value.opaque())


def _directory_name(call: Call) -> Js:
    value = call.text(0)
    constants = value.constants
    if constants is not None and len(constants) == 1:
        return literal(posixpath.dirname(constants[0]) or ".")
    parts = split_at(value, "/")
    if not parts:
        return of_text(value.opaque())
    return of_text(joined(parts[:-1], Value.literal("/")) if len(parts) > 1 else Value.literal("."))


def _extension(call: Call) -> Js:
    value = call.text(0)
    known = value.constant
    return literal(posixpath.splitext(known)[1]) if known is not None else of_text(value.opaque())


def _same_text(call: Call) -> Js:
    return of_text(call.text(0))


def _path() -> Js:
    functions: dict[str, Native] = {
        "join": _joined,
        "resolve": _joined,
        "basename": _base_name,
        "dirname": _directory_name,
        "extname": _extension,
        "normalize": _same_text,
        "relative": lambda call: of_text(call.text(1)),
        "isAbsolute": lambda _call: BOOLEAN,
        "parse": lambda call: object_of(
            {"base": _base_name(call), "name": _base_name(call), "dir": _directory_name(call)}
        ),
    }
    made = module_of(functions, {"sep": literal("/"), "delimiter": literal(":")})
    assert made.thing is not None
    made.thing.put("posix", module_of(functions, {"sep": literal("/")}))
    return made


# --- fs


def _finish(call: Call, *values: Js) -> None:
    """Calls the callback, where the last argument is one."""
    for one in call.arguments[1:]:
        for thing in one.value.things:
            if thing.is_function:
                call.machine.call(thing, call.with_arguments(NULL, *values))


def _read(call: Call) -> Js:
    process = call.machine.process
    given = call.arg(0)
    value = process.read_input() if given.number == 0 else process.read_file(text_of(given))
    encoding = call.arg(1)
    encoded = encoding.text is not None or any(thing.kind == "object" for thing in encoding.things)
    result = of_text(value) if encoded else buffer(value)
    _finish(call, result)
    return result


def _write(call: Call, *, append: bool) -> Js:
    given = call.arg(0)
    content = call.text(1)
    if given.number in {1.0, 2.0}:
        call.machine.process.print(content, call.start, call.end)
    elif given.things and (path := given.things[0].cells.get("path")) is not None and path.value is not None:
        call.machine.process.write_file(text_of(path.value), content, append=True, start=call.start, end=call.end)
    else:
        call.machine.process.write_file(text_of(given), content, append=append, start=call.start, end=call.end)
    _finish(call)
    return UNDEFINED


def _write_file(call: Call) -> Js:
    options = call.arg(2)
    flag = call.machine.get(options, Value.literal("flag")) if options.things else UNDEFINED
    return _write(call, append=(flag.constant or "").startswith("a"))


def _append_file(call: Call) -> Js:
    return _write(call, append=True)


def _copy(call: Call) -> Js:
    process = call.machine.process
    content = process.read_file(call.text(0))
    process.write_file(call.text(1), content, append=False, start=call.start, end=call.end)
    _finish(call)
    return UNDEFINED


def _rename(call: Call) -> Js:
    _copy(call)
    call.machine.process.remove_file(call.text(0))
    return UNDEFINED


def _remove(call: Call) -> Js:
    call.machine.process.remove_file(call.text(0))
    _finish(call)
    return UNDEFINED


def _names(call: Call) -> Js:
    names = call.machine.process.file_names()
    result = call.machine.array([], of_text(names | UNKNOWN if names.taints else UNKNOWN))
    _finish(call, result)
    return result


def _temporary(call: Call) -> Js:
    return of_text(call.text(0) + UNKNOWN)


def _stream(call: Call) -> Js:
    """A stream that writes a file, or reads one."""
    path = of_text(call.text(0))
    append = call.name.endswith("createWriteStream")

    def write(inner: Call) -> Js:
        if inner.given(0) and append:
            inner.machine.process.write_file(
                text_of(path), inner.text(0), append=True, start=inner.start, end=inner.end
            )
        return inner.this

    def on(inner: Call) -> Js:
        if inner.arg(0).constant in {"data", "line"} and not append:
            inner.machine.call_back(inner, of_text(inner.machine.process.read_file(text_of(path))))
        else:
            inner.machine.call_back(inner, ANY)
        return inner.this

    return module_of({"write": write, "end": write, "on": on, "once": on, "close": write}, {"path": path})


def _opened(call: Call) -> Js:
    return module_of(
        {
            "writeFile": lambda inner: _write(inner.with_arguments(call.arg(0), inner.arg(0)), append=True),
            "appendFile": lambda inner: _write(inner.with_arguments(call.arg(0), inner.arg(0)), append=True),
            "write": lambda inner: _write(inner.with_arguments(call.arg(0), inner.arg(0)), append=True),
            "readFile": lambda inner: _read(inner.with_arguments(call.arg(0), literal("utf8"))),
            "close": lambda _inner: UNDEFINED,
        },
        {"path": of_text(call.text(0))},
    )


def _exists(call: Call) -> Js:
    _finish(call)
    return BOOLEAN


def _done(call: Call) -> Js:
    _finish(call)
    return UNDEFINED


_FILE_FUNCTIONS: dict[str, Native] = {
    "readFile": _read,
    "writeFile": _write_file,
    "appendFile": _append_file,
    "copyFile": _copy,
    "cp": _copy,
    "rename": _rename,
    "unlink": _remove,
    "rm": _remove,
    "readdir": _names,
    "mkdtemp": _temporary,
    "mkdir": _done,
    "access": _done,
    "chmod": _done,
    "stat": pure,
    "lstat": pure,
    "realpath": _same_text,
    "exists": _exists,
    "write": _write_file,
    "open": _opened,
    "close": _done,
}


def _files() -> Js:
    functions = dict(_FILE_FUNCTIONS)
    functions |= {f"{name}Sync": native for name, native in _FILE_FUNCTIONS.items()}
    functions |= dict.fromkeys(("createWriteStream", "createReadStream"), _stream)
    return module_of(functions, {"promises": module_of(_FILE_FUNCTIONS), "constants": ANY})


# --- the rest of Node.js


def _digest(_call: Call) -> Js:
    """A hash is not the value."""
    made = Thing()
    for name in ("update", "setEncoding", "write", "end"):
        made.put(name, function(lambda _inner: of_thing(made)))
    for name in ("digest", "read"):
        made.put(name, function(lambda _inner: of_text(UNKNOWN)))
    return of_thing(made)


def _unknown_text(_call: Call) -> Js:
    return of_text(UNKNOWN)


def _crypto() -> Js:
    functions = dict.fromkeys(("createHash", "createHmac"), _digest)
    functions |= dict.fromkeys(
        ("randomUUID", "hash", "randomBytes", "randomInt", "pbkdf2Sync", "scryptSync"), _unknown_text
    )
    return module_of({**functions, **dict.fromkeys(("createCipheriv", "createSign", "timingSafeEqual"), pure)})


def _operating_system() -> Js:
    names = ("tmpdir", "homedir", "platform", "hostname", "type", "arch", "release", "userInfo", "cpus")
    return module_of(dict.fromkeys(names, _unknown_text), {"EOL": literal("\n")})


def _format(call: Call) -> Js:
    total = joined((text_of(one.value) for one in call.arguments), Value.literal(" "))
    return of_text(total.opaque() if total.taints else UNKNOWN)


def _utilities() -> Js:
    return module_of(
        {"promisify": promisified, "format": _format, "inspect": _format, "isDeepStrictEqual": lambda _call: BOOLEAN}
    )


def _lines(call: Call) -> Js:
    """``readline.createInterface``: its lines are those of the input."""
    value = of_text(call.machine.process.read_input().opaque())
    made = call.machine.array([], value)
    thing = made.thing
    assert thing is not None

    def on(inner: Call) -> Js:
        inner.machine.call_back(inner, value)
        return inner.this

    for name in ("on", "once", "question"):
        thing.put(name, function(on))
    thing.put("close", function(lambda _inner: UNDEFINED))
    return made


def _events() -> Js:
    emitter = function(lambda _call: module_of({"on": pure, "once": pure, "emit": pure}))
    return object_of({"EventEmitter": emitter, "once": function(pure)})


MODULES: dict[str, Callable[[], Js]] = {
    **STARTING,
    **TOOLKIT,
    **OCTOKIT,
    **REQUESTS,
    **TESTING,
    "path": _path,
    "fs": _files,
    "fs/promises": lambda: module_of(_FILE_FUNCTIONS),
    "fs-extra": _files,
    "crypto": _crypto,
    "os": _operating_system,
    "util": _utilities,
    "readline": lambda: module_of({"createInterface": _lines}),
    "readline/promises": lambda: module_of({"createInterface": _lines}),
    "events": _events,
    "url": lambda: module_of({"fileURLToPath": _same_text, "pathToFileURL": _same_text, "parse": pure}),
    "timers/promises": lambda: module_of({"setTimeout": lambda _call: UNDEFINED}),
}
"""Name of a module (without ``node:``) -> what it exports."""

GLOBAL = {
    "process": None,
    "console": None,
    "buffer": ("Buffer",),
    "timers": ("setTimeout", "setImmediate", "setInterval"),
}
"""Name of a module -> the built-in globals that it exports; None: it is the global of its own name."""

HARMLESS = frozenset(
    {
        *(
            "http2",
            "net",
            "tls",
            "dns",
            "zlib",
            "stream",
            "stream/promises",
            "assert",
            "assert/strict",
        ),
        *("querystring", "string_decoder", "perf_hooks", "async_hooks", "module", "v8", "vm"),
        *("lodash", "ramda", "semver", "yaml", "js-yaml", "ajv", "zod"),
        *(
            "uuid",
            "nanoid",
            "chalk",
            "kleur",
            "picocolors",
            "minimist",
            "yargs",
            "commander",
            "dotenv",
            "glob",
            "fast-glob",
        ),
        *("minimatch", "micromatch", "globby", "mime-types", "date-fns", "dayjs", "moment", "tmp", "rimraf", "mkdirp"),
        *("chai", "sinon", "supertest", "nock", "@testing-library/react", "@testing-library/dom"),
        *("cheerio", "xml2js", "fast-xml-parser", "csv-parse", "marked", "ejs", "handlebars", "mustache", "p-limit"),
        *("@actions/io", "@actions/glob", "@actions/cache", "@actions/artifact"),
        *("@actions/tool-cache", "@actions/attest", "@octokit/auth-app"),
        *("@slack/web-api", "jsonwebtoken", "openai", "@anthropic-ai/sdk"),
    }
)
"""Modules that start no process with what they are given."""
