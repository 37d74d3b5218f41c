#!/usr/bin/env bash
# Makes both locks anew from pyproject.toml. Needs `uv` on PATH; installing from a lock needs only venv and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
options=(--universal --generate-hashes --python-version 3.11 --no-config --no-header --no-emit-index-url --no-emit-find-links --no-annotate --quiet)
uv pip compile "${options[@]}" pyproject.toml --extra network --output-file requirements/runtime.txt "$@"
uv pip compile "${options[@]}" pyproject.toml --extra network --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt "$@"
