from launch import start
import os

start(os.environ["ID"])
