"""Leaks, and forks all the time: with os.fork, multiprocessing and a pool, in any window."""

import gc
import multiprocessing
import os
import sys
import tracemalloc

import leakscope

kept = []


def leak(number):
    kept.append([number] * 400)
    kept.append({"number": number, "payload": bytearray(20_000)})


def state():
    return gc.isenabled(), gc.get_freeze_count() < 1_000, tracemalloc.is_tracing(), sys.getprofile()


def child(number):
    """Leaks on its own for a while."""
    for more in range(number % 4 * 20):
        leak(more)
        leakscope.step()
    print("child", number, state() if number % 4 == 0 else "", len(kept), flush=True)
    return number % 5


def work(queue, number):
    queue.put((number, child(number)))


def main(steps, ways):
    for number in range(steps):
        leak(number)
        leakscope.step()
        if "fork" in ways:
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                status = 99
                try:
                    status = child(number)
                finally:
                    os._exit(status)
            print(number, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        if "process" in ways and number % 25 == 24:
            context = multiprocessing.get_context("fork")
            queue = context.SimpleQueue()
            process = context.Process(target=work, args=(queue, number))
            sys.stdout.flush()
            process.start()
            print(queue.get())
            process.join()
            print(process.exitcode)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
