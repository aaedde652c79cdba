"""Clients with threads of their own send longer and longer requests; each gives all of it back."""

import queue
import threading
import time

import leakscope

CLIENTS, REQUESTS, PART = 12, 320, 100_000


def serve(requests, answers):
    while (count := requests.get()) is not None:
        # Below 64 parts: the list that holds them is a small object then, and not in the arena.
        parts = [bytearray(PART) for _ in range(count)]
        del parts
        answers.put(count)


weights = bytearray(30 << 20)  # a block of this size, freed, makes glibc raise its thresholds
del weights
answers = queue.SimpleQueue()
clients = [queue.SimpleQueue() for _ in range(CLIENTS)]
for requests in clients:
    threading.Thread(target=serve, args=(requests, answers), daemon=True).start()
for step in range(REQUESTS):
    clients[step % CLIENTS].put(2 + step // 6)
    answers.get()
    time.sleep(0.004)
    leakscope.step()
