"""What an agent could try from inside, one function an attempt, run outside (must succeed) and inside (must not).

These modules run as a program of their own, with no rights but those of the agent: they import the standard library,
:mod:`runner_e2e.kernel` and one another only.
"""
