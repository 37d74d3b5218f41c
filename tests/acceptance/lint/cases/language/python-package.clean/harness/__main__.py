import os

from harness.launch import start

start(os.environ["ID"])
