import os
import subprocess

subprocess.run(["tool", str(len(os.environ["ID"]))], check=True)
