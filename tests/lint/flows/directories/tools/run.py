import os, subprocess

subprocess.run(["tool", os.environ["CELL"]])  # leak
