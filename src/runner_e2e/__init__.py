"""Paid AI-agent evaluations on GitHub Actions, confidential, paid once, and proven."""

__version__ = "0.1.0"
