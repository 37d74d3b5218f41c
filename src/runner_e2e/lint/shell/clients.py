"""``curl`` and ``wget``: what they send, from arguments and from files, and what they print of it.

Source: https://curl.se/docs/manpage.html and the manual of GNU Wget.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.github_address import is_api
from runner_e2e.lint.shell.archives import revealed
from runner_e2e.lint.shell.command_lines import Grammar, Option, begin_of, read_line, without_begin
from runner_e2e.lint.shell.downloads import archive_at
from runner_e2e.lint.shell.filesystem import read_content, read_file, write_channel, write_content
from runner_e2e.lint.shell.patterns import decode, encode
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runner_e2e.lint.shell.command_lines import CommandLine
    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.values import Hole

__all__ = ["curl", "wget"]

_CURL = Grammar(
    letters="AbcCdDeEFhHKmoPQrTtuUwxXyYz",
    names=frozenset({"user-agent", "cookie", "cookie-jar", "continue-at", "data", "data-ascii", "data-binary"})
    | {"data-raw", "data-urlencode", "json", "form", "form-string", "upload-file", "dump-header", "referer", "cert"}
    | {"header", "config", "max-time", "output", "range", "user", "proxy-user", "write-out", "proxy", "request"}
    | {"connect-timeout", "retry", "retry-delay", "retry-max-time", "url", "key", "cacert", "capath", "resolve"}
    | {"oauth2-bearer", "limit-rate", "max-redirs", "trace", "trace-ascii", "stderr", "output-dir", "url-query"}
    | {"proxy-header", "request-target", "max-filesize", "ciphers", "connect-to", "interface", "netrc-file"}
    | {"unix-socket", "variable", "expand-url", "expand-data", "expand-header", "time-cond", "speed-limit"},
)
_DATA = ("d", "data", "data-ascii", "data-binary", "json", "expand-data")
_SENT = (*_DATA, "data-raw", "data-urlencode", "F", "form", "form-string", "T", "upload-file", "url-query")
_HEADERS = ("H", "header", "A", "user-agent", "e", "referer", "b", "cookie", "expand-header", "oauth2-bearer")
_SETTING = re.compile(r"\s*-{0,2}([\w-]+)(?:\s*[=:]\s*|\s+|$)(.*)")
_WGET = Grammar(
    letters="oaeiBtOTwQPUlARDIX",
    names=frozenset({"output-file", "append-output", "execute", "input-file", "base", "tries", "output-document"})
    | {"timeout", "wait", "directory-prefix", "user-agent", "header", "post-data", "post-file", "body-data"}
    | {"body-file", "method", "user", "password", "config", "referer", "load-cookies", "save-cookies"},
)
_WGET_FILES = ("post-file", "body-file")
_WGET_TEXTS = ("post-data", "body-data")


# --- curl


def curl(machine: Machine, call: Invocation) -> None:
    """Runs ``curl``; its arguments are told by the caller."""
    line = read_line(call, _CURL)
    _take_settings(machine, call, line)
    urls = [one.value for one, _ in line.operands] + line.values("url", "expand-url")
    sent = [
        one._replace(value=value)
        for one in line.options
        if one.name in _SENT
        for value in _content(machine, call, one.name, one.value)
    ]
    if any(map(is_api, urls)) and not line.has("G", "get") and not _is_secret(urls):
        _publish(machine, call, sent)
    if line.has("v", "verbose", "trace", "trace-ascii"):
        shown = [*urls, *(_header(machine, call, one) for one in line.values(*_HEADERS))]
        shown += [one.value for one in sent] if line.has("trace", "trace-ascii") else []
        _show(machine, call, shown, number=2)
    written_out = line.last("w", "write-out")
    if written_out is not None and re.search(r"%\{url", begin_of(written_out)):
        _show(machine, call, urls, number=1)
    response = _response(machine, call, urls)
    if line.has("O", "remote-name"):
        return
    write_content(machine, call, line.last("o", "output"), response)


def _take_settings(machine: Machine, call: Invocation, line: CommandLine) -> None:
    """Adds what files of settings say: ``-K``, and the one that is read always."""
    home = call.environment.get("HOME", UNKNOWN) + Value.literal("/.curlrc")
    files = line.values("K", "config")
    if not line.has("q", "disable"):
        files.append(home)
    for path in files:
        content = read_content(machine, call, path)
        for text in content.texts if content.taints or content.constants is not None else ():
            holes: list[Hole] = []
            for setting in encode(text, holes).split("\n"):
                found = _SETTING.match(setting)
                if found is not None and not setting.lstrip().startswith("#"):
                    value = found[2].strip()
                    if value.startswith('"'):
                        value = re.sub(r"\\(.)", r"\1", value[1:].rpartition('"')[0])
                    line.options.append(Option(found[1], Value((decode(value, holes),))))


def _content(machine: Machine, call: Invocation, option: str, value: Value) -> Iterator[Value]:
    """What an option sends: its own text, or the file that it names."""
    begin = begin_of(value)
    yield value
    if option in ("T", "upload-file"):
        yield read_content(machine, call, value)
    elif option in _DATA and begin.startswith("@"):
        yield read_content(machine, call, without_begin(value, 1))
    elif option in ("F", "form") and (found := re.match(r"[^=]*=[@<]", begin)):
        yield read_content(machine, call, _without_type(without_begin(value, found.end())))
    elif option in ("data-urlencode", "url-query") and (found := re.match(r"[^=@]*@", begin)):
        yield read_content(machine, call, without_begin(value, found.end()))


def _without_type(path: Value) -> Value:
    """The path in ``file;type=text/plain``."""
    found = []
    for text in path.texts:
        holes: list[Hole] = []
        found.append(decode(encode(text, holes).partition(";")[0].strip('"'), holes))
    return Value.any_of(found)


def _header(machine: Machine, call: Invocation, value: Value) -> Value:
    return read_content(machine, call, without_begin(value, 1)) if begin_of(value).startswith("@") else value


def _response(machine: Machine, call: Invocation, urls: list[Value]) -> Value:
    total = EMPTY
    for url in urls:
        archive = archive_at(machine, call, url)
        if archive is not None:
            total = total + archive
        elif begin_of(url).startswith("file://"):
            total = total + read_file(machine, call.state, without_begin(url, 7), call.environment)
        else:
            total = total + UNKNOWN
    return total


# --- wget


def wget(machine: Machine, call: Invocation) -> None:
    """Runs ``wget``; its arguments are told by the caller."""
    line = read_line(call, _WGET)
    urls = [one.value for one, _ in line.operands]
    urls += [read_content(machine, call, path) for path in line.values("i", "input-file")]
    sent = [one for one in line.options if one.name in _WGET_TEXTS]
    files = (one for one in line.options if one.name in _WGET_FILES)
    sent += [one._replace(value=read_content(machine, call, one.value)) for one in files]
    if any(map(is_api, urls)) and not _is_secret(urls):
        _publish(machine, call, sent)
    if not line.has("q", "quiet"):
        notes = line.last("o", "output-file", "a", "append-output")
        if notes is None:
            _show(machine, call, urls, number=2)
        else:
            write_content(machine, call, notes, join(urls).opaque() if urls else UNKNOWN)
    response = _response(machine, call, urls)
    target = line.last("O", "output-document")
    if target is not None:
        write_content(machine, call, target, response)


# --- both


def _is_secret(urls: list[Value]) -> bool:
    """Whether what is sent becomes a secret of Actions, which is encrypted."""
    return any(isinstance(piece, str) and "/secrets/" in piece for url in urls for piece in url.pieces())


def _publish(machine: Machine, call: Invocation, sent: Iterable[Option]) -> None:
    subject = f"what `{call.name}` sends to GitHub's API"
    for one in sent:
        start, end = (one.start, one.end) if one.end else call.span
        machine.publish(revealed(one.value, call.state.files), start=start, end=end, subject=subject)


def _show(machine: Machine, call: Invocation, shown: list[Value], *, number: int) -> None:
    found = [value for value in shown if value.taints]
    if found:
        text = Value((normal(("> ",)),)) + join(found) + Value.literal("\n")
        write_channel(machine, call.state, number, text, call.span)
