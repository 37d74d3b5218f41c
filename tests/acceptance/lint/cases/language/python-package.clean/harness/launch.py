from . import commands


def start(case):
    commands.run(["tool", "--size", str(len(case))])
