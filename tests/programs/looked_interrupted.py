"""Leaks, and does something to itself whenever it is being looked at.

wait       nothing
kill       SIGKILL
interrupt  SIGINT, as often as it can; goes on, and looks for what was left behind
die        SIGINT, and does not catch it
exit       an exception, or the end, in the middle of a window
"""

import gc
import os
import signal
import sys
import threading
import time
import tracemalloc

import leakscope

kept = []
MOST = 20
DEEP = ("snapshot.py", "roots.py", "frames.py", "anatomy.py", "python_lines.py")
sent = 0


def leak(number):
    kept.append([number] * 400)
    kept.append({"number": number, "payload": bytearray(6000)})


def is_looked_at(main):
    frame = sys._current_frames().get(main)
    while frame is not None:
        if "/leakscope/observe/" in frame.f_code.co_filename:
            return os.path.basename(frame.f_code.co_filename) in DEEP
        frame = frame.f_back
    return False


def disturb(main, number):
    global sent
    while sent < MOST:
        time.sleep(0.0005 * (sent % 4))
        if is_looked_at(main):
            sent += 1
            os.kill(os.getpid(), number)
            time.sleep(0.02)


def train(steps, by_clock):
    for number in range(steps):
        leak(number)
        if by_clock:
            time.sleep(0.002)
        else:
            leakscope.step()


def go_on(steps, by_clock):
    """Catches every interrupt. Nothing of ours may stay switched on."""
    left = set()
    caught = 0
    for _ in range(steps):
        try:
            train(1, by_clock)
            sum(range(100))
        except KeyboardInterrupt:
            caught += 1
            found = (
                gc.isenabled(),
                tracemalloc.is_tracing(),
                gc.get_freeze_count() < 1_000,  # Python 3.12 begins with 375
                sys.getprofile(),
            )
            left.add(found)
            local = threading.Event()
            del local
    print("left behind:", left <= {(True, False, True, None)}, left - {(True, False, True, None)})
    print("caught", caught, "of", sent, file=sys.stderr)


def fail(number):
    raise ValueError(f"at {number}")


def main(what, steps, by_clock):
    signals = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "die": signal.SIGINT}
    if what in signals:
        arguments = (threading.get_ident(), signals[what])
        threading.Thread(target=disturb, args=arguments, daemon=True).start()
    if what == "interrupt":
        go_on(steps, by_clock)
    else:
        train(steps, by_clock)
    if what == "die":
        os.kill(os.getpid(), signal.SIGINT)  # nobody has looked
        time.sleep(10)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), "clock" in sys.argv)
