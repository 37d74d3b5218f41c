"""``python -m runner_e2e`` is ``runner-e2e``."""

import sys

from runner_e2e.cli import main

sys.exit(main())
