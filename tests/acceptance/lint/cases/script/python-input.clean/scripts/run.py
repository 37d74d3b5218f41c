import os
import subprocess

subprocess.run(["wc", "-c"], input=os.environ["ID"], text=True, check=False)
