"""Executes snippets that are new or changed, for ``verdicts.json``: ``python3 -m tests.lint.languages.record``."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from tests.lint.languages.test_execution import HERE, SNIPPETS, VERDICTS
from tests.lint.shell.execution import executed_verdict
from tests.lint.shell.test_execution import fingerprint


def main() -> None:
    stale = [one for one in SNIPPETS if VERDICTS.get(one.name, {}).get("text") != fingerprint(one)]
    with ThreadPoolExecutor(2) as pool:
        fresh = {
            one.name: {"leaks": verdict, "text": fingerprint(one)}
            for one, verdict in zip(stale, pool.map(executed_verdict, stale), strict=True)
        }
    verdicts = {one.name: fresh.get(one.name) or VERDICTS[one.name] for one in SNIPPETS}
    for one in stale:
        if fresh[one.name]["leaks"] != bool(one.lines):
            print(f"{one.name}: execution shows {'a leak' if fresh[one.name]['leaks'] else 'no leak'}")
    (HERE / "verdicts.json").write_text(json.dumps(verdicts, indent=0, sort_keys=True) + "\n")
    print(f"{len(fresh)} of {len(SNIPPETS)} snippets executed")


if __name__ == "__main__":
    main()
