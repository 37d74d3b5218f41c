"""Reads a sandbox policy from JSON and reports every mistake in it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from runner_e2e.errors import ConfigurationError, Place, Problem
from runner_e2e.sandbox.limits import InvalidLimitError, parse_limit
from runner_e2e.sandbox.policy import (
    IDENTITIES,
    INDISPENSABLE,
    LAYERS,
    NEEDS,
    PATH_LISTS,
    REACHES,
    SCHEMA,
    SWITCHES,
    WALLS,
    EnvironmentRules,
    Network,
    Policy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.sandbox.policy import Need

__all__ = ["parse_policy"]

_HIGHEST_USER: Final = 2**32 - 2


def parse_policy(text: str, *, path: str) -> Policy:
    """Reads a policy from JSON; raises :class:`ConfigurationError` with every mistake found in it."""
    try:
        document = json.loads(text)
    except ValueError as error:
        line, column = getattr(error, "lineno", 0), getattr(error, "colno", 0)
        raise ConfigurationError(
            "the sandbox policy is not JSON",
            why=str(error),
            fix=f'write an object such as {{"schema": "{SCHEMA}", "hide": ["/path"]}}',
            place=Place(path=path, line=line, column=column),
        ) from error
    reader = _Reader(path)
    policy = reader.policy(document)
    if reader.problems:
        raise ConfigurationError.of(tuple(reader.problems))
    return policy


class _Reader:
    """Takes a JSON document apart and collects what is wrong with it."""

    def __init__(self, path: str) -> None:
        self.place = Place(path=path)
        self.problems: list[Problem] = []

    def wrong(self, what: str, fix: str) -> None:
        self.problems.append(Problem(what=what, fix=fix, place=self.place))

    def policy(self, document: object) -> Policy:
        if not isinstance(document, dict):
            self.wrong("the sandbox policy is not a JSON object", f'write {{"schema": "{SCHEMA}", "hide": [...]}}')
            return Policy()
        if document.get("schema") != SCHEMA:
            self.wrong(f"schema is {document.get('schema')!r}", f'write "schema": "{SCHEMA}"')
        known = {"schema", *Policy.__fields__}
        for name in sorted(set(document) - known):
            self.wrong(f"unknown key {name!r}", f"use one of {', '.join(sorted(known))}")
        readers: dict[str, Callable[[object], Any]] = {
            **{name: partial(self.strings, name) for name in PATH_LISTS},
            **{name: partial(self.switch, name) for name in SWITCHES},
            "home": self.home,
            "user": self.user,
            "wall": lambda value: self.choice("wall", value, WALLS),
            "identity": lambda value: self.choice("identity", value, IDENTITIES),
            "network": self.network,
            "environment": self.environment,
            "layers": self.layers,
            "limits": self.limits,
        }
        values = {name: read(document[name]) for name, read in readers.items() if name in document}
        return Policy(**values) if not self.problems else Policy()

    def home(self, value: object) -> str:
        if not isinstance(value, str):
            self.wrong(f"home is {value!r}", 'write "home": "/path"')
            return ""
        return value

    def strings(self, name: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.wrong(f"{name} is not a list of strings", f'write "{name}": ["…"]')
            return ()
        return tuple(value)

    def switch(self, name: str, value: object) -> bool:
        if not isinstance(value, bool):
            self.wrong(f"{name} is {value!r}", f'write "{name}": true or false')
        return value is True

    def user(self, value: object) -> int | None:
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _HIGHEST_USER:
            self.wrong(f"user is {value!r}", "write the number of an unprivileged user")
            return None
        return value

    def choice(self, name: str, value: object, allowed: Sequence[str]) -> Any:
        if value not in allowed:
            self.wrong(f"{name} is {value!r}", f"use one of {', '.join(allowed)}")
            return allowed[0]
        return value

    def environment(self, value: object) -> EnvironmentRules:
        if not isinstance(value, dict) or set(value) - {"keep", "drop", "set"}:
            self.wrong("environment is not an object of keep, drop and set", 'write "environment": {"drop": ["NAME"]}')
            return EnvironmentRules()
        rules = EnvironmentRules()
        if "keep" in value:
            rules = rules.replace(keep=self.strings("environment.keep", value["keep"]))
        if "drop" in value:
            rules = rules.replace(drop=self.strings("environment.drop", value["drop"]))
        pairs = value.get("set", {})
        if not isinstance(pairs, dict) or not all(isinstance(item, str) for item in pairs.values()):
            self.wrong("environment.set is not an object of strings", 'write "set": {"NAME": "value"}')
            return rules
        return rules.replace(set_=tuple(pairs.items()))

    def network(self, value: object) -> Network:
        if isinstance(value, list):
            hosts = self.strings("network", value)
            if not value:
                self.wrong("network lists no host", 'write "network": "loopback", or name hosts')
            elif hosts:
                self.rules(hosts)
            return Network(reach="hosts", hosts=hosts)
        reaches = [reach for reach in REACHES if reach != "hosts"]
        if value not in reaches:
            self.wrong(f"network is {value!r}", f"write one of {', '.join(reaches)}, or a list of hosts")
            return Network()
        return Network(reach=value)

    def rules(self, hosts: Sequence[str]) -> None:
        from runner_e2e.sandbox.hosts import InvalidRuleError, parse_rule

        for text in hosts:
            try:
                parse_rule(text)
            except InvalidRuleError as error:
                self.wrong(f"network: {error}", error.fix)

    def limits(self, value: object) -> Mapping[str, int]:
        if not isinstance(value, dict):
            self.wrong("limits is not an object", 'write "limits": {"memory": "2G", "processes": 512}')
            return {}
        chosen = {}
        for name, amount in value.items():
            try:
                chosen[name] = parse_limit(name, amount)
            except InvalidLimitError as error:
                self.wrong(f"limits: {error}", error.fix)
        return chosen

    def layers(self, value: object) -> Mapping[str, Need]:
        if not isinstance(value, dict):
            self.wrong("layers is not an object", 'write "layers": {"pids": "required"}')
            return LAYERS
        chosen = dict(LAYERS)
        for name, need in value.items():
            layer = self.choice("a layer", name, tuple(LAYERS))
            chosen[layer] = self.choice(f"layers.{name}", need, NEEDS)
        for layer in INDISPENSABLE:
            if chosen[layer] != "required":
                self.wrong(f"layers.{layer} is {chosen[layer]!r}", "leave it out: no launch goes without it")
        return chosen
