"""One purse of time for everything dear that is done inside the program.

A look may start if, after paying for it, all looks together cost no more than a share of the
time the process has lived, plus a small credit: a run of three seconds must get its answer too.
"""

from __future__ import annotations

from time import monotonic_ns

_CREDIT_S = 60.0
"""Seconds of running for which is paid in advance: at 1 % a process may spend 0.6 s on looks before
it has earned them, a first look and a second in a PyTorch process (some 280,000 objects). Only
programs whose memory rises ever spend it."""

LARGE_CREDIT_S = 180.0
"""The same where the heap is three times as large before the program has begun: TensorFlow and
Keras bring 700,000 objects, and a first look and a second take 1.2 to 1.8 s."""


class Budget:
    """Time that may be spent, and what has been."""

    def __init__(self, share: float, now_ns: int | None = None) -> None:
        self.share = share
        self.spent_ns = 0
        self._forgiven_ns = 0
        self.longest_ns = 0
        """The longest the program has been made to wait at once."""
        self.credit_s = _CREDIT_S
        self._started_ns = monotonic_ns() if now_ns is None else now_ns

    def left_ns(self, now_ns: int) -> int:
        earned_ns = (now_ns - self._started_ns + self.credit_s * 1e9) * self.share
        return int(earned_ns) - self.spent_ns + self._forgiven_ns

    def allows(self, cost_ns: float, now_ns: int, more_credit_s: float = 0.0) -> bool:
        return cost_ns <= self.left_ns(now_ns) + more_credit_s * 1e9 * self.share

    def owes(self, cost_ns: float, now_ns: int) -> bool:
        """May one of the few looks be taken without which there is no answer? Whatever was spent
        before, if it is no dearer than the credit: a heap that is large from the start, because of
        what is imported, does not make a leak less of one."""
        return cost_ns <= self.credit_s * 1e9 * self.share or self.allows(cost_ns, now_ns)

    def begin_anew(self) -> None:
        """The program begins to step: it does not pay for looks at what it built before. Of ten
        programs on a GPU four had a model that took seconds to build, and no look was left for
        their steps."""
        self._forgiven_ns = self.spent_ns

    def pay(self, cost_ns: int, pause_ns: int = 0) -> None:
        self.spent_ns += cost_ns
        self.longest_ns = max(self.longest_ns, pause_ns)
