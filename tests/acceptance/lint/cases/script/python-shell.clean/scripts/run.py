import os

os.system('echo "$ID"')
