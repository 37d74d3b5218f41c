import os
import subprocess

case = os.environ["ID"]
subprocess.run(["tool", "--id", case], check=True)
