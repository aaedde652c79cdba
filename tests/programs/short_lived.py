"""Workers that are ended before anything in them could be measured."""

import multiprocessing
import os
import signal
import time


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    time.sleep(1.0)
    process = multiprocessing.get_context("fork").Process(target=die, name="short")
    process.start()
    process.join()
