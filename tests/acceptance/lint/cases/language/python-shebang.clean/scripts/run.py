#!/usr/bin/env python3
import os

assert os.environ["ID"]
