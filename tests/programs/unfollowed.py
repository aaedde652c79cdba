"""Starts Pythons that leave the agent out, and waits for them."""

import subprocess
import sys

WAIT = "import time; time.sleep(1)"
FLAGS = (["-I"], ["-E"], ["-S"], ["-W", "ignore", "-Xutf8", "-uB", "-I"])
children = [subprocess.Popen([sys.executable, *flags, "-c", WAIT]) for flags in FLAGS]
children.append(subprocess.Popen([sys.executable, "-c", WAIT], env={}))
print([child.wait() for child in children])
print("scrubbed", children[-1].pid)
