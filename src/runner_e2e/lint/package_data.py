"""Tables of the lint that are data: ``lint/data/<name>.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["load_table"]

# `importlib.resources` would take longer to load than all the tables.
_FOLDER = Path(__file__).parent / "data"


def load_table(name: str) -> dict[str, Any]:
    """The object in the file."""
    loaded = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded
