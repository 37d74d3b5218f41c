import os
import subprocess

subprocess.run(["tool", os.environ["ID"]], check=True)
