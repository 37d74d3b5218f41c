"""What to write instead of an argument: by command, in words that can be copied."""

from __future__ import annotations

import posixpath
import re

__all__ = ["advise", "placed"]

_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_OPTION_VALUE = re.compile(r"^[\"']?(-{0,2}[A-Za-z][\w-]*)=")

_LOGIN = re.compile(r"\blogin\b")

_BY_KIND = {
    "environment": 'hand it over in the environment, `{name}="${name}" {command} …`, and read the variable there',
    "stdin": 'write it to the standard input: `printf %s "${name}" | {command} …`',
    "docker-env": "export the variable and give its name only: `{command} … -e {name} …` (without `=`)",
    "curl-header": "let curl read the header from its input: `printf 'Name: %s' \"${name}\" | curl -H @- …`",
    "curl-data": "let curl read the data from its input: `printf '…%s' \"${name}\" | curl --data-binary @- …`",
    "curl-json": "let curl read the data from its input: `printf '…%s…' \"${name}\" | curl --json @- …`",
    "curl-option": 'let curl read this from its input: `printf \'{option} = "…%s"\' "${name}" | curl --config - …`',
    "jq-env": "read it from the environment: `{name}=\"${name}\" {command} '… $ENV.{name} …'`",
    "file": "write it to a file that only this user can read (`umask 077`), and give the name of the file",
    "builtin": "use what the shell has built in: {builtin}",
    "javascript": "hand it over in the environment: `env: {{ ...process.env, VALUE: … }}` in the options of the call",
    "github-script": "hand it over in the environment: `env: {{ ...process.env, VALUE: … }}` in the options of `exec`",
    "python": 'hand it over in the environment, `env={{**os.environ, "VALUE": …}}` of the call, and read it there',
    "perl": "hand it over in the environment, `$ENV{{VALUE}} = …` before the call, and read it there",
    "ruby": 'hand it over in the environment, `system({{"VALUE" => …}}, …)`, and read it there',
    "powershell": "hand it over in the environment, `$env:VALUE = …` before the command, and read it there",
    "cmd": "hand it over in the environment, `set VALUE=…` before the command, and read it there",
    "possible": "what `{command}` does is not known here: see whether it starts a process with what it is given",
    "runner": "the runner makes this command line: give a handle here, and let the program read the value from a file",
    "action": "give the action a handle, or do this in a script that reads the value from its environment",
    "action-environment": "give the variable only to the steps that need it: this action puts all it inherits there",
}

_FIXED = frozenset(("builtin", "possible", "runner", "action", "action-environment"))
"""Kinds whose advice is the same for every command."""

_CURL_WORD = re.compile(r"[\"']?(?:--([a-z][a-z0-9-]*)=|-([A-Za-z])(?=[^-\s]))")
_CURL_OPTION = re.compile(r"(?:^|\s)(?:--([a-z][a-z0-9-]*)|-[A-Za-z]*([A-Za-z]))[\s=]+$")
_CURL_NAMES = {"H": "header", "d": "data", "u": "user", "F": "form", "b": "cookie", "U": "proxy-user", "E": "cert"}
_CURL_KINDS = {
    "header": "curl-header",
    "json": "curl-json",
    **dict.fromkeys(("data", "data-ascii", "data-raw", "data-binary", "data-urlencode"), "curl-data"),
}
"""What curl reads from a file that is named by ``@``."""

_CURL_CONFIGURED = frozenset(("user", "form", "cookie", "proxy-user", "cert", "oauth2-bearer", "pass", "proxy-header"))
"""Options that take a value, and which curl reads from a configuration alone; what belongs to none is an address."""

_INHERITED = {
    "javascript": re.compile(r"process\.env(?:\.|\[['\"])(\w+)"),
    "github-script": re.compile(r"process\.env(?:\.|\[['\"])(\w+)"),
    "python": re.compile(r"os\.environ(?:\.get\(|\[)['\"](\w+)|getenv\(['\"](\w+)"),
    "perl": re.compile(r"\$ENV\{['\"]?(\w+)"),
    "ruby": re.compile(r"ENV(?:\[|\.fetch\()['\"](\w+)"),
    "powershell": re.compile(r"\$\{?env:(\w+)", re.IGNORECASE),
    "cmd": re.compile(r"[%!](\w+)(?::[^%!]*)?[%!]"),
}
"""How a program of a language names a variable of its environment, which its children inherit."""

_BY_COMMAND = {
    "env": 'set it for the one command without `env`: `{name}="${name}" command …`',
    "sudo": "export it, and let sudo keep it: `sudo --preserve-env={name} command …`",
    "awk": 'read it from the environment: `{name}="${name}" awk \'… ENVIRON["{name}"] …\'`',
    "gawk": 'read it from the environment: `{name}="${name}" gawk \'… ENVIRON["{name}"] …\'`',
    "gh": "send the inputs as JSON on the standard input: `jq -n '{{id: $ENV.{name}}}' | gh workflow run … --json`",
    "python": 'read it from the environment: `{name}="${name}" python … # os.environ["{name}"]`',
    "python3": 'read it from the environment: `{name}="${name}" python3 … # os.environ["{name}"]`',
    "node": 'read it from the environment: `{name}="${name}" node … // process.env.{name}`',
    "make": "export it, and use `$${name}` in the recipe, which the recipe's shell expands",
    "xargs": "read it in a loop: `while IFS= read -r value; do …; done`, and hand it over in the environment",
    "grep": "give the pattern as a file: `grep -f <(printf '%s\\n' \"${name}\") …`",
    "docker login": 'write it to the standard input: `printf %s "${name}" | docker login --password-stdin …`',
    "podman login": 'write it to the standard input: `printf %s "${name}" | podman login --password-stdin …`',
    "mkdir": "name the folder by a handle, not by the value",
    "touch": "name the file by a handle, not by the value",
}

_BUILTINS = {
    "basename": "`${{{name}##*/}}`",
    "dirname": "`${{{name}%/*}}`",
    "echo": "`echo` or `printf` without a path",
    "printf": "`printf` without a path",
    "test": "`[[ … ]]`",
    "[": "`[[ … ]]`",
    "expr": "`$(( … ))` and `${{{name}…}}`",
}


def placed(kind: str, *, command: str, sure: bool) -> str:
    """Where a value stands, in words that follow it: as an argument of *command*, surely or perhaps."""
    if kind == "possible":
        return f"may be an argument of a process that `{command}` starts"
    return f"{'is' if sure else 'may be'} an argument of `{command}`"


def advise(kind: str, *, command: str, argument: str, before: str = "") -> str:
    """What to write instead of *argument* of *command*.

    *kind* is what the command table says, or a sentence of its own; *before* is the line up to the argument.
    """
    inherited = _INHERITED[kind].search(argument) if kind in _INHERITED else None
    if inherited is not None:
        name = next(group for group in inherited.groups() if group)
        return f"`{command}` inherits the environment: let it read `{name}` there, and leave the argument out"
    variable = _VARIABLE.search(argument)
    option = _OPTION_VALUE.match(argument)
    name = variable[1] if variable else option[1].lstrip("-").replace("-", "_").upper() if option else "VALUE"
    program = posixpath.basename(command) if kind != "runner" else command
    if kind not in _BY_KIND:
        return kind
    kind, option_of_curl = _of_curl(argument, before) if kind == "curl-header" else (kind, "")
    if kind == "docker-env" and _LOGIN.search(before):
        program += " login"
    template = _BY_KIND[kind] if kind in _FIXED or kind in _INHERITED else _BY_COMMAND.get(program, _BY_KIND[kind])
    builtin = _BUILTINS.get(program, "a parameter expansion, `[[ … ]]`, or `printf`").format(name=name)
    return template.format(name=name, command=program, builtin=builtin, option=option_of_curl)


def _of_curl(argument: str, before: str) -> tuple[str, str]:
    """The kind of advice for *argument* of curl, and the option that it is the value of."""
    found = _CURL_WORD.match(argument) or _CURL_OPTION.search(before)
    option = (found[1] or _CURL_NAMES.get(found[2], "")) if found else ""
    return _CURL_KINDS.get(option, "curl-option"), option if option in _CURL_CONFIGURED else "url"
