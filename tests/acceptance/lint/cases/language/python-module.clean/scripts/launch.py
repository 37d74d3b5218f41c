import os
import subprocess


def start(case):
    subprocess.run(["tool"], env={**os.environ, "CASE": case}, check=True)
