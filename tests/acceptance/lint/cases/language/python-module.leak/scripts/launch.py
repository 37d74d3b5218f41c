import subprocess


def start(case):
    subprocess.run(["tool", case], check=True)
