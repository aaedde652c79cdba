"""Leaks, and uses what looks use too: the collector's switches, tracemalloc, trace functions."""

import gc

if __name__ == "__main__":
    FROZEN_EARLY = gc.get_freeze_count()
    gc.freeze()  # few objects yet
    gc.unfreeze()

import sys
import threading
import time
import tracemalloc

import leakscope

kept = []


class Marker:
    pass


def leak(number):
    kept.append([number] * 400)
    kept.append({"number": number, "payload": bytearray(3000)})


def pause(by_clock):
    if by_clock:
        time.sleep(0.008)
    else:
        leakscope.step()


def is_hidden(marker):
    return not any(one is marker for one in gc.get_objects())


def switches(steps, by_clock):
    """What was set is what is read, whoever set something in between."""
    for number in range(steps):
        leak(number)
        if number % 2:
            gc.disable()
        gc.set_threshold(700 + number % 50, 10 + number % 3)
        for _ in range(20):
            if gc.isenabled() == bool(number % 2):
                print("the collector was switched at", number)
            pause(by_clock) if _ == 10 else None
        print(number, gc.isenabled(), gc.get_threshold(), gc.get_debug())
        gc.enable()


def frozen(steps, by_clock):
    """Frozen from the start: stays so."""
    marker = Marker()
    gc.freeze()
    for number in range(steps):
        leak(number)
        pause(by_clock)
        print(number, gc.get_freeze_count() > 0, is_hidden(marker))


def thawing(steps, by_clock):
    """Frozen and thawed again and again: what it froze is hidden until it says so."""
    for number in range(steps):
        leak(number)
        if number % 9 == 0:
            marker = Marker()
            gc.freeze()
        pause(by_clock)
        if number % 9 < 4:
            print(number, "hidden", is_hidden(marker), gc.get_freeze_count() > 0)
        if number % 9 == 4:
            gc.unfreeze()
            print(number, "thawed", not is_hidden(marker), gc.get_freeze_count() == FROZEN_EARLY)


def tracing(steps, by_clock):
    """tracemalloc of its own, with its own limit."""
    tracemalloc.start(3)
    first = bytearray(5000)
    for number in range(steps):
        leak(number)
        pause(by_clock)
        line = tracemalloc.get_object_traceback(first)[-1].lineno
        print(number, tracemalloc.is_tracing(), tracemalloc.get_traceback_limit(), line)


def tracing_at_times(steps, by_clock):
    for number in range(steps):
        leak(number)
        if number % 5 == 3:
            tracemalloc.start(5)
            mine = bytearray(5000)
        pause(by_clock)
        if number % 5 == 4:
            trace = tracemalloc.get_object_traceback(mine)
            tracemalloc.take_snapshot()
            told = tracemalloc.is_tracing(), tracemalloc.get_traceback_limit(), trace is not None
            print(number, *told)
            tracemalloc.stop()


def inner(number, by_clock, *, word="w"):
    value, other = number + 1, [number]
    pause(by_clock)
    other.append(word)
    del word
    return value, len(other), sum(one for one in range(3) if one < value + 3)


def traced(steps, by_clock, install):
    seen = 0

    def watch(frame, event, argument):
        nonlocal seen
        seen += 1
        sum(range(3000)) if by_clock else None
        return watch

    install(watch)
    for number in range(steps):
        leak(number)
        value, length, more = inner(number, by_clock)
        print(number, value, length, more, sorted(locals()))
    install(None)
    print(seen > steps)


def main(what, steps, by_clock):
    if what == "settrace":
        traced(steps, by_clock, sys.settrace)
    elif what == "setprofile":
        traced(steps, by_clock, sys.setprofile)
    elif what == "settrace in a thread":
        thread = threading.Thread(target=traced, args=(steps, by_clock, sys.settrace))
        thread.start()
        thread.join()
    else:
        globals()[what](steps, by_clock)
    print(sys.gettrace(), sys.getprofile(), gc.isenabled(), len(kept))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), "clock" in sys.argv)
