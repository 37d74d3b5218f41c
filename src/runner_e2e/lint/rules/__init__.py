"""The rules, one file each, in the order of the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.rules import (
    confidential_argv,
    confidential_script_file,
    invalid_expression,
    secret_argv,
    unanalysable_script,
)

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Rule

__all__ = ["RULES"]

RULES: tuple[Rule, ...] = (
    confidential_argv.RULE,
    confidential_script_file.RULE,
    secret_argv.RULE,
    unanalysable_script.RULE,
    invalid_expression.RULE,
)
