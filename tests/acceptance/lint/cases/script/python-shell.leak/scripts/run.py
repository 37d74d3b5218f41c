import os

os.system("echo " + os.environ["ID"])
