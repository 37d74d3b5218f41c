import os
import subprocess

subprocess.run(["tool", os.environ["CELL"]], check=True)  # leak
