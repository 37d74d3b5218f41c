"""Loaded by every Python of a case: says which line of which script starts a program (see ``recorder.c``)."""

import os
import sys

RECORD = os.environ.get("TRUTH_RECORD", "")
LIBRARY = os.path.dirname(os.__file__)
STARTS = {"subprocess.Popen": 1, "os.exec": 1, "os.posix_spawn": 1, "os.spawn": 2, "os.system": 0}


def words(value: object) -> list[bytes]:
    """The argv of a start: a sequence of words, or what becomes of one command line (os.system)."""
    if isinstance(value, str | bytes | os.PathLike):
        return [b"sh", b"-c", os.fsencode(value)]
    return [os.fsencode(word) for word in value] if isinstance(value, list | tuple) else []


def watch(event: str, arguments: tuple[object, ...]) -> None:
    position = STARTS.get(event)
    if position is None:
        return
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((LIBRARY, "<frozen")):
        frame = frame.f_back
    if frame is None:
        return
    source = frame.f_code.co_filename
    source = os.path.realpath(source) if os.path.exists(source) else ""
    fields = [b"exec", b"%d" % os.getpid(), b"%d" % os.getppid(), os.fsencode(source), b"%d" % frame.f_lineno]
    record = b"\0".join([*fields, *words(arguments[position])]) + b"\0"
    file = os.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(file, b"%d\0" % len(record) + record)
    finally:
        os.close(file)


def record_main() -> None:
    """A step's own Python script, as ``recorder.c`` does it for shells."""
    arguments = sys.orig_argv[1:]
    script = next((word for word in arguments if not word.startswith("-")), "")
    if "-c" in arguments or "-m" in arguments or not os.path.isfile(script):
        return
    with open(script, "rb") as stream:
        record = b"script\0%d\0%s\0%s\0" % (os.getpid(), os.fsencode(script), stream.read())
    file = os.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(file, b"%d\0" % len(record) + record)
    finally:
        os.close(file)


if RECORD:
    record_main()
    sys.addaudithook(watch)
