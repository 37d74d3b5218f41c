"""The rules, one file each, in the order of the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.rules import (
    confidential_argv,
    confidential_file,
    confidential_log,
    confidential_name,
    confidential_output_unmasked,
    confidential_script_file,
    confidential_summary,
    confidential_third_party,
    invalid_expression,
    invalid_ignore,
    invalid_reference,
    paid_checkout,
    paid_concurrency,
    paid_environment,
    paid_gate,
    paid_install_scripts,
    paid_permissions,
    paid_report_trust,
    paid_runner_label,
    paid_schedule,
    paid_secret_scope,
    paid_timeout,
    paid_trigger,
    secret_argv,
    selection_by_argv,
    unanalysable_script,
    unpinned_uses,
    unused_ignore,
)

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Rule

__all__ = ["RULES"]

RULES: tuple[Rule, ...] = (
    confidential_argv.RULE,
    confidential_script_file.RULE,
    confidential_name.RULE,
    confidential_log.RULE,
    confidential_summary.RULE,
    confidential_output_unmasked.RULE,
    confidential_file.RULE,
    confidential_third_party.RULE,
    secret_argv.RULE,
    unanalysable_script.RULE,
    paid_trigger.RULE,
    paid_gate.RULE,
    paid_environment.RULE,
    paid_secret_scope.RULE,
    paid_checkout.RULE,
    paid_install_scripts.RULE,
    paid_report_trust.RULE,
    paid_runner_label.RULE,
    paid_concurrency.RULE,
    paid_timeout.RULE,
    paid_schedule.RULE,
    paid_permissions.RULE,
    unpinned_uses.RULE,
    selection_by_argv.RULE,
    invalid_expression.RULE,
    invalid_reference.RULE,
    invalid_ignore.RULE,
    unused_ignore.RULE,
)
