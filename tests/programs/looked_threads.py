"""Leaks, and four threads change everything they have all the time."""

import sys
import threading
import time

import leakscope

kept = []
shared = {"lists": [[] for _ in range(4)], "numbers": {}, "words": set()}
is_over = False
errors = []


class Box:
    total = 0


def numbers(most):
    for number in range(most):  # noqa: UP028 - instructions of Python, where threads take turns
        yield number


def churn(place):
    mine = shared["lists"][place]
    rounds = 0
    try:
        while not is_over:
            rounds += 1
            # Tuples, dicts and frames that are half done while another thread looks at them.
            made = [number * 2 for number in numbers(60)]
            assert made[59:] == [118]
            mine.append(made)
            mine.sort(key=lambda one: -one[3])
            box = Box()
            for number in numbers(30):
                shared["numbers"][place, number] = box
                setattr(box, f"name_{place}_{number}", made)
                shared["words"].add((place, number % 7))
            for number in numbers(30):
                del shared["numbers"][place, number]
                delattr(box, f"name_{place}_{number}")
            assert [one[1] for one in mine] == [2] * len(mine)
            if len(mine) > 20:
                mine.clear()
    except BaseException as error:  # noqa: BLE001
        errors.append(repr(error))
    if not rounds:
        errors.append("never ran")


def main(steps, by_clock):
    global is_over
    sys.setswitchinterval(0.0002)  # turns are short, so that many fall into a look
    threads = [threading.Thread(target=churn, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for number in range(steps):
        kept.append([number] * 400)
        kept.append({"number": number, "payload": bytearray(6000)})
        if by_clock:
            time.sleep(0.01)
        else:
            time.sleep(0.001)
            leakscope.step()
    is_over = True
    for thread in threads:
        thread.join()
    print(len(kept), len(shared["numbers"]), len(shared["words"]), errors)


if __name__ == "__main__":
    main(int(sys.argv[1]), "clock" in sys.argv)
