"""Graders turn what an agent did, as its events and its workspace show it, into a verdict with evidence."""
