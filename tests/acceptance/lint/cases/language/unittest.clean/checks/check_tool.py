import os
import subprocess
import unittest


class Tool(unittest.TestCase):
    def test_tool(self):
        subprocess.run(["tool", str(len(os.environ["ID"]))], check=True)

    def tool(self):
        subprocess.run(["tool", os.environ["ID"]], check=True)


def test_function():
    subprocess.run(["tool", os.environ["ID"]], check=True)
