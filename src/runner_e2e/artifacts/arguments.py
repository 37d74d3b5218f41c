"""The command line of ``artifact exec``, the one place where an unknown option is no error.

A host may pass options of a newer version to an older launcher: they are ignored, with a warning. An option may bring
its value as the next word, so that what is the artifact is found from the right: the last word before ``--``.
"""

from __future__ import annotations

from runner_e2e.errors import UsageError
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OPTIONS", "Option", "Request", "parse_arguments"]


class Option(Record):
    """One option: its name, what its value is called ("" for a switch), its help."""

    name: str
    value: str = ""
    help: str = ""

    @property
    def key(self) -> str:
        """The field of :class:`Request` that it fills."""
        return self.name.removeprefix("--").replace("-", "_")


OPTIONS = (
    Option(name="--sha256", value="DIGEST", help="The digest of the artifact, 64 hexadecimal digits. Required."),
    Option(
        name="--trusted-launch-root",
        value="DIR",
        help="Run what lies on this read-only image in place, without a copy and without a hash.",
    ),
    Option(name="--assigned", help="The host assigned this executable: never run it in place."),
    Option(name="--quiet", help="Log warnings only, not how the artifact runs."),
)


class Request(Record):
    """What one command line asks for; ``ignored`` are the options that this version does not know, with values."""

    path: str
    arguments: tuple[str, ...] = ()
    sha256: str = ""
    trusted_launch_root: str = ""
    assigned: bool = False
    quiet: bool = False
    ignored: tuple[str, ...] = ()


def parse_arguments(words: Sequence[str]) -> Request:
    """Reads ``[OPTION…] PATH [-- ARGUMENT…]``.

    Raises :class:`UsageError` for anything that is wrong and cannot be an option of a newer version.
    """
    before, rest = list(words), []
    if "--" in before:
        cut = before.index("--")
        before, rest = before[:cut], before[cut + 1 :]
    values: dict[str, str | bool] = {}
    ignored: list[str] = []
    path: str | None = None
    maybe_value = False  # whether the word before is an unknown option, which may take this word as its value
    known = {option.name: option for option in OPTIONS}
    while before:
        word = before.pop(0)
        if word.startswith("-") and word != "-":
            if path is not None:
                raise _usage(f"{word} stands after the artifact {path}", "write arguments of the artifact after --")
            name, equals, value = word.partition("=")
            if name not in known:
                ignored.append(word)
                maybe_value = not equals
                continue
            values[known[name].key] = _value(known[name], value if equals else None, before, values)
        elif path is not None:
            raise _usage(f"{word} stands after the artifact {path}", "write arguments of the artifact after --")
        elif maybe_value and any(not other.startswith("-") for other in _after_options(before, known)):
            ignored.append(word)
        else:
            path = word
        maybe_value = False
    if path is None:
        raise _usage("no artifact is named", "write its path before --")
    if "sha256" not in values:
        raise _usage("--sha256 is missing", "give the digest that runner-e2e artifact digest shows")
    return Request(path=path, arguments=tuple(rest), ignored=tuple(ignored), **values)  # type: ignore[arg-type]


def _after_options(words: Sequence[str], known: dict[str, Option]) -> list[str]:
    """The words without the values of options that are known."""
    left = []
    skip = False
    for word in words:
        if skip:
            skip = False
            continue
        skip = word in known and bool(known[word].value)
        left.append(word)
    return left


def _value(option: Option, given: str | None, rest: list[str], values: dict[str, str | bool]) -> str | bool:
    if option.key in values:
        raise _usage(f"{option.name} is given twice", "give it once")
    if not option.value:
        if given is not None:
            raise _usage(f"{option.name} takes no value", f"write {option.name}")
        return True
    if given is None:
        if not rest:
            raise _usage(f"{option.name} has no value", f"write {option.name} {option.value}")
        given = rest.pop(0)
    if not given:
        raise _usage(f"{option.name} is empty", f"write {option.name} {option.value}")
    return given


def _usage(what: str, fix: str) -> UsageError:
    return UsageError(what, fix=fix)
