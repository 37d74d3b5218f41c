"""Loaded by every Python of a case: says which line of which script starts a program (see ``recorder.c``).

Only what the interpreter has loaded already is used, since this runs in every process of a case.
"""

import os
import sys
import types  # noqa: TC003 - typing would be the heavier import

RECORD = os.environ.get("TRUTH_RECORD", "")
LIBRARY = os.__file__.removesuffix("os.py")
# Audit event -> position of the argv among its arguments.
STARTS = {"subprocess.Popen": 1, "os.exec": 1, "os.posix_spawn": 1, "os.spawn": 2, "os.system": 0}


def words(value: object) -> list[bytes]:
    """The argv of a start: a sequence of words, or what becomes of one command line (os.system)."""
    if isinstance(value, str | bytes | os.PathLike):
        return [b"sh", b"-c", os.fsencode(value)]
    return [os.fsencode(word) for word in value] if isinstance(value, list | tuple) else []


def append(*fields: bytes) -> None:
    """Writes one record at once, so that processes do not mix."""
    record = b"\0".join(fields) + b"\0"
    file = os.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(file, b"%d\0" % len(record) + record)
    finally:
        os.close(file)


def file_content(path: str) -> bytes | None:
    """The content of a file, None when there is none of this name."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, 1 << 16)
    except OSError:
        return None
    finally:
        os.close(file)


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Notes the line of the nearest frame that is not the standard library's."""
    position = STARTS.get(event)
    if position is None:
        return
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((LIBRARY, "<frozen")):
        frame = frame.f_back
    if frame is None:
        return
    source = frame.f_code.co_filename
    place = b"" if source.startswith("<") else os.fsencode(os.path.realpath(source))
    numbers = (b"%d" % os.getpid(), b"%d" % os.getppid(), place, b"%d" % frame.f_lineno)
    append(b"exec", *numbers, *words(arguments[position]))


def record_main() -> None:
    """Notes the text of a step's own Python script, as ``recorder.c`` does it for shells."""
    arguments = sys.orig_argv[1:]
    script = next((word for word in arguments if not word.startswith("-")), "")
    if script and "-c" not in arguments and "-m" not in arguments:
        content = file_content(script)
        if content is not None:
            append(b"script", b"%d" % os.getpid(), os.fsencode(script), content)


if RECORD:
    record_main()
    sys.addaudithook(watch)
