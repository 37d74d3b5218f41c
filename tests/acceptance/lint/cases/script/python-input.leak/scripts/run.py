import os
import subprocess

subprocess.run(["wc", "-c", os.environ["ID"]], check=False)
