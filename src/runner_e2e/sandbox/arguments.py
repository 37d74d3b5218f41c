"""The options of a launch, one table for the command line and for the quick entry script, and what they ask for.

The quick script reads them itself because ``argparse`` costs more than the launch. Every unknown or incomplete option
is an error: a mistyped ``--hide`` must not leave something visible.
"""

from __future__ import annotations

import os

from runner_e2e.sandbox.answers import ask, read_text
from runner_e2e.sandbox.policy import INDISPENSABLE, LAYERS, REACHES, WALLS, Network, Policy
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from runner_e2e.errors import UsageError
    from runner_e2e.sandbox.layouts import Layout

__all__ = ["OPTIONS", "POLICY_VARIABLE", "Option", "Request", "parse_arguments", "policy_of", "request_of"]

POLICY_VARIABLE = "RUNNER_E2E_SANDBOX_POLICY"
INSTANCE_VARIABLE = "RUNNER_E2E_INSTANCE"


class Option(Record):
    """One option: its name, what its value is called ("" for a switch), its help, whether it may come again."""

    name: str
    value: str = ""
    help: str = ""
    repeats: bool = False

    @property
    def key(self) -> str:
        """The field of :class:`Request` it fills."""
        return self.name.removeprefix("--").replace("-", "_")


OPTIONS = (
    Option(name="--policy", value="FILE", help=f"JSON policy file (default: ${POLICY_VARIABLE})."),
    Option(name="--layout", value="NAME", help="Hide what this layout names: paperclip, generic, or a file."),
    Option(name="--provider", value="NAME", help="The kind of agent, where the layout tells them apart."),
    Option(name="--instance", value="DIR", help=f"The product's instance (default: ${INSTANCE_VARIABLE})."),
    Option(name="--state-dir", value="DIR", help="The run's own state directory."),
    Option(name="--session-id", value="ID", help="The run's own session id."),
    Option(name="--value", value="NAME=TEXT", help="Another value for the layout's placeholders.", repeats=True),
    Option(name="--hide", value="PATH", help="Hide this path, absolute and existing.", repeats=True),
    Option(name="--expose", value="PATH", help="Show this path beneath a hidden one.", repeats=True),
    Option(name="--workspace", value="PATH", help="A directory the agent writes in under its own user.", repeats=True),
    Option(name="--read-only", value="PATH", help="A path that the agent must not change.", repeats=True),
    Option(
        name="--share",
        value="PATH",
        help="A path to read that the agent's own user could not reach, such as tools in a closed home.",
        repeats=True,
    ),
    Option(name="--home", value="PATH", help="The agent's home directory."),
    Option(
        name="--wall",
        value="WALL",
        help="What keeps the covers in place: landlock, or locked-mounts for agents that bring their own sandbox.",
    ),
    Option(
        name="--network",
        value="REACH",
        help="What it reaches: none, loopback, a host (api.example.com, *.example.com:443), or a file of hosts.",
        repeats=True,
    ),
    Option(name="--require", value="LAYER", help="Refuse to start without this layer.", repeats=True),
    Option(name="--without", value="LAYER", help="Switch this layer off.", repeats=True),
    Option(
        name="--limit",
        value="NAME=VALUE",
        help="A limit on: memory, processes, file-size, open-files, scratch, cpu, time; for example memory=2G.",
        repeats=True,
    ),
    Option(name="--keep-user", help="As root: run the agent as root without capabilities, not as a user of its own."),
    Option(name="--allow-hard-links", help="Start although a hidden file has another name outside the hidden paths."),
    Option(name="--report", value="FILE", help="Write what was hidden, exposed and active as JSON."),
    Option(name="--quiet", help="Do not log what is hidden, exposed and active."),
)


class Request(Record):
    """What the options of one launch say."""

    command: tuple[str, ...]
    policy: str = ""
    layout: str = ""
    provider: str = ""
    instance: str = ""
    state_dir: str = ""
    session_id: str = ""
    value: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()
    workspace: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    share: tuple[str, ...] = ()
    home: str = ""
    wall: str = ""
    network: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    keep_user: bool = False
    allow_hard_links: bool = False
    report: str = ""
    quiet: bool = False
    known_layout: Layout | None = None  # what `layout` names, where the caller read it already


def _usage(what: str, why: str, fix: str) -> UsageError:
    from runner_e2e.errors import UsageError

    return UsageError(what, why=why, fix=fix)


def parse_arguments(arguments: Sequence[str]) -> Request:
    """Reads ``[OPTION…] -- COMMAND…``; raises :class:`UsageError` for anything it does not know."""
    known = {option.name: option for option in OPTIONS}
    values: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest and rest[0] != "--":
        name, equals, value = rest.pop(0).partition("=")
        if name not in known:
            what = f"unknown option {name}" if name.startswith("-") else f"unexpected word {name}"
            raise _usage(what, "", f"options are {', '.join(known)}; the command comes after --")
        option = known[name]
        if option.value and not equals:
            if not rest or rest[0] == "--":
                raise _usage(f"{name} has no value", "", f"write {name} {option.value}")
            value = rest.pop(0)
        elif not option.value and equals:
            raise _usage(f"{name} takes no value", "", f"write {name}")
        if option.key in values and not option.repeats:
            raise _usage(f"{name} is given twice", "", "give it once")
        values.setdefault(option.key, []).append(value)
    return request_of(rest[1:], values)


def request_of(command: Sequence[str], values: Mapping[str, Sequence[str]]) -> Request:
    """The request for options already split: key -> values in their order (a switch: one empty value)."""
    if not command:
        raise _usage("no command is given", "", "write it after --, for example: -- claude --print hello")
    fields: dict[str, Any] = {}
    for option in OPTIONS:
        if given := values.get(option.key):
            fields[option.key] = tuple(given) if option.repeats else given[-1] if option.value else True
    return Request(command=tuple(command), **fields)


def policy_of(request: Request, environment: Mapping[str, str]) -> Policy:
    """The policy that *request* asks for: the file it names (or the variable), and what its options add."""
    path = request.policy or environment.get(POLICY_VARIABLE, "")
    base = _read(path) if path else Policy()
    if request.layout:
        base = base.joined(_layout_policy(request, environment))
    elif request.provider or request.state_dir or request.session_id or request.value:
        raise _usage("a value for a layout is given without one", "", "give --layout, or leave the value out")
    added = Policy(
        hide=request.hide,
        expose=request.expose,
        workspace=request.workspace,
        read_only=request.read_only,
        share=request.share,
    )
    policy = base.joined(added)
    if request.home:
        policy = policy.replace(home=request.home)
    if request.wall:
        _known("wall", request.wall, WALLS)
        policy = policy.replace(wall=request.wall)
    if request.keep_user:
        policy = policy.replace(identity="keep")
    if request.allow_hard_links:
        policy = policy.replace(allow_hard_links=True)
    if request.limit:
        policy = policy.replace(limits={**policy.limits, **_limits(request.limit)})
    return _with_layers(policy, request)


def _with_layers(policy: Policy, request: Request) -> Policy:
    """*policy* with what *request* says of its layers and of the network."""
    if request.network:
        policy = policy.replace(network=_narrowed(policy.network, _network(request.network)))
    for layer in (*request.require, *request.without):
        _known("layer", layer, tuple(LAYERS))
    for layer in request.without:
        if layer in INDISPENSABLE:
            raise _usage(
                f"the layer {layer} cannot be switched off", "no launch goes without it", "leave --without out"
            )
    if "network" in request.without and policy.network.reach != "open":
        what = f"the layer network cannot be switched off where the network is {policy.network.reach}"
        raise _usage(what, "nothing else keeps the agent from it", "leave --without network out")
    policy = policy.replace(layers={**policy.layers, **dict.fromkeys(request.without, "off")})
    return policy.requiring(*request.require)


def _layout_policy(request: Request, environment: Mapping[str, str]) -> Policy:
    from runner_e2e.sandbox.layouts import apply, read_layout

    values = {
        "instance": request.instance or environment.get(INSTANCE_VARIABLE, ""),
        "state-dir": request.state_dir,
        "session-id": request.session_id,
    }
    for pair in request.value:
        name, equals, value = pair.partition("=")
        if not equals or not name or not value:
            raise _usage(f"--value {pair} is not NAME=TEXT", "", "write for example --value agent-home=/path")
        values[name] = value
    layout = request.known_layout or read_layout(request.layout)
    return apply(layout, provider=request.provider, values=values, environment=environment)


def _limits(pairs: Sequence[str]) -> dict[str, int]:
    from runner_e2e.sandbox.limits import InvalidLimitError, parse_limit

    limits = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            limits[name] = parse_limit(name, value)
        except InvalidLimitError as error:
            raise _usage(f"--limit {pair} is refused", str(error), error.fix) from error
    return limits


def _network(words: Sequence[str]) -> Network:
    """What the values of ``--network`` say: one reach, or hosts, some of them in files."""
    for reach in REACHES:
        if reach in words and reach != "hosts":
            if len(words) > 1:
                raise _usage(f"--network {reach} stands beside other values", "", "give one of them")
            return Network(reach=reach)
    from runner_e2e.sandbox.hosts import InvalidRuleError, parse_rules

    hosts: list[str] = []
    for word in words:
        # The names of networks have slashes too, but begin with no sign of a path.
        hosts += _hosts_of(word) if word.startswith(("/", "./", "../")) else word.split(",")
    try:
        parse_rules(hosts)
    except InvalidRuleError as error:
        raise _usage("--network is refused", str(error), error.fix) from error
    return Network(reach="hosts", hosts=tuple(dict.fromkeys(hosts)))


def _hosts_of(path: str) -> list[str]:
    """The rules in a file: one a line; what follows ``#`` is a comment."""
    try:
        lines = [line.partition("#")[0].strip() for line in ask(read_text, path).split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        from runner_e2e.errors import why_unread

        fix = "name a readable file with one host a line"
        raise _usage(f"--network {path} cannot be read", why_unread(error), fix) from error
    if not any(lines):
        raise _usage(f"--network {path} names no host", "", "write one host a line, or give --network loopback")
    return [line for line in lines if line]


def _narrowed(given: Network, wanted: Network) -> Network:
    """*wanted*, which must not reach further than the policy that is *given*."""
    if REACHES.index(wanted.reach) < REACHES.index(given.reach) or wanted == given:
        return wanted
    beyond: list[str] = []
    if wanted.reach == given.reach == "hosts":
        from runner_e2e.sandbox.hosts import covers, parse_rules

        outer = parse_rules(given.hosts)
        beyond = [rule.text for rule in parse_rules(wanted.hosts) if not covers(outer, rule)]
        if not beyond:
            return wanted
    why = f"the policy allows {', '.join(given.hosts) or given.reach}"
    raise _usage(f"--network {', '.join(beyond) or wanted.reach} is refused", why, "name no more than the policy does")


def _known(what: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise _usage(f"unknown {what} {value}", "", f"use one of {', '.join(allowed)}")


def _read(path: str) -> Policy:
    from runner_e2e.sandbox.policy_json import parse_policy

    try:
        text = ask(read_text, path)
    except (OSError, UnicodeDecodeError) as error:
        from runner_e2e.errors import ConfigurationError, Place, why_unread

        why = why_unread(error)
        fix = f"give --policy a readable JSON file, or unset {POLICY_VARIABLE}"
        place = Place(path=os.path.abspath(path))
        raise ConfigurationError("the sandbox policy cannot be read", why=why, fix=fix, place=place) from error
    return parse_policy(text, path=path)
