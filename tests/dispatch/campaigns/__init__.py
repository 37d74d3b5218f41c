"""Crash schedules: the client as a process of its own that is killed anywhere, against a double where anything breaks.

A schedule is made from a number. ``python -m tests.dispatch.campaigns --seed N`` plays one again, with every step.
"""
