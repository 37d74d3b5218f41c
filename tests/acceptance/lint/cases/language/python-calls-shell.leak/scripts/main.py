import os
import subprocess

subprocess.run(["bash", "scripts/run.sh"], env={**os.environ, "CASE": os.environ["ID"]}, check=True)
