"""Makes a child in every way Python has, without any framework; prints each one's pid."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor


def pid_of(_):
    return os.getpid()


def main():
    print("main", os.getpid())
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            print(f"{method}-pool", pool.apply(pid_of, (0,)))
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            print(f"{method}-executor", executor.submit(pid_of, 0).result())
    code = "import os; print('subprocess', os.getpid(), flush=True)"
    subprocess.run([sys.executable, "-c", code], check=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print("fork", os.getpid(), flush=True)
        grandchild = os.fork()
        if grandchild == 0:
            print("fork-of-fork", os.getpid(), flush=True)
            os._exit(0)
        os.waitpid(grandchild, 0)
        os._exit(0)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main()
