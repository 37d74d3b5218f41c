"""A harness that says too much, and then does what our own selftest's harness does."""

from __future__ import annotations

import base64
import os
import runpy
from pathlib import Path

selected = os.environ["PAPERCLIP_RUNNER_E2E_SELECTED_ID"]
key = os.environ["ANTHROPIC_API_KEY"]
secret = key if os.environ.get("ACCEPTANCE_LEAK") else "nothing"
assert "OPENAI_API_KEY" not in os.environ
assert "GITHUB_ENV" not in os.environ
print("running", selected, "with", secret)
print("encoded", base64.b64encode(selected.encode()).decode())
print("::error title=injected::the runner must not obey this")
print("::set-output name=verdict::injected", flush=True)
runpy.run_path(str(Path(__file__).with_name("harness.py")), run_name="__main__")
