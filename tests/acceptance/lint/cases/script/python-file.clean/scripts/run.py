import os
import subprocess

case = os.environ["ID"]
subprocess.run(["tool", "--id", str(len(case))], check=True)
