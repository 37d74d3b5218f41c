import subprocess

from . import launch


def run(words):
    assert launch.start
    subprocess.run(words, check=True)
