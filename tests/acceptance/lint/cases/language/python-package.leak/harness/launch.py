from . import commands


def start(case):
    commands.run(["tool", "--id", case])
