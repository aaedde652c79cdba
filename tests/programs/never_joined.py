"""Starts a process every few steps and never ends it; or ends each, or leaves it to nobody."""

import subprocess
import sys
import time

import leakscope

CODE = "import sys; x = bytearray(4 << 20); sys.stdin.read()"


def start():
    return subprocess.Popen([sys.executable, "-S", "-c", CODE], stdin=subprocess.PIPE)


if __name__ == "__main__":
    started = []
    for step in range(150):
        time.sleep(0.02)
        if step % 5 == 0:
            process = start()
            if sys.argv[1] == "stays":
                started.append(process)
            elif sys.argv[1] == "ends":
                process.communicate(b"")
            else:
                process.stdin.close()
                started.append(process)
        leakscope.step()
    for process in started:
        process.kill()
