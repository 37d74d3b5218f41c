"""Launches an artifact, quickly: ``python3 -I -S launch_artifact.py --sha256 DIGEST [OPTION…] PATH [-- ARGUMENT…]``.

The same as ``runner-e2e artifact exec``, with nothing but the standard library in the process.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "src"))  # noqa: PTH118, PTH120

from runner_e2e.artifacts.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
