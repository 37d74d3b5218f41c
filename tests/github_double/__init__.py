"""A double of GitHub for tests: a stateful server with the operations that the product uses, and faults to order.

It runs in the test's process (:class:`tests.github_double.server.Server`), or by hand:
``python -m tests.github_double``. Its answers are checked against models generated from GitHub's own API description.
"""
