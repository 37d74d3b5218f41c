"""The JSON Schemas that are published, by the name that a document gives in its ``schema``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

import runner_e2e

__all__ = ["PACKAGE", "checked", "schemas", "validator"]

PACKAGE = Path(runner_e2e.__file__).parent


@cache
def schemas() -> dict[str, Path]:
    """Every published schema: ``runner-e2e.NAME/vN`` -> its file. That of the lint's own data is not."""
    found = {}
    for path in sorted(PACKAGE.glob("*/schemas/*-v*.json")):
        if path.name == "actions-v1.json":
            continue
        name, _, version = path.stem.rpartition("-v")
        found[f"runner-e2e.{name}/v{version}"] = path
    return found


@cache
def _registry() -> Registry[Any]:
    contents = [json.loads(path.read_text()) for path in schemas().values()]
    return Registry[Any]().with_resources((each["$id"], Resource.from_contents(each)) for each in contents)


@cache
def validator(name: str) -> Draft202012Validator:
    """A validator of the schema *name*, which finds the others that it refers to."""
    schema = json.loads(schemas()[name].read_text())
    return Draft202012Validator(schema, registry=_registry(), format_checker=FormatChecker())


def checked(document: Any, name: str = "") -> Any:
    """*document*, when it is valid under the schema *name*, or the one that it names itself."""
    validator(name or document["schema"]).validate(document)
    return document
