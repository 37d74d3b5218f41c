import os
import subprocess
import unittest


class Tool(unittest.TestCase):
    def setUp(self):
        self.case = os.environ["ID"]

    def test_nothing(self):
        self.assertTrue(self.case)

    def test_tool(self):
        subprocess.run(["tool", self.case], check=True)


def test_function():
    subprocess.run(["tool", os.environ["ID"]], check=True)
