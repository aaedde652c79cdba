"""Wire types shared by the triage service and the load generator."""

import random
from dataclasses import dataclass, field
from typing import Any

WORDS = [
    "refund",
    "invoice",
    "login",
    "password",
    "crash",
    "slow",
    "export",
    "import",
    "billing",
    "account",
    "team",
    "seat",
    "api",
    "token",
    "webhook",
    "timeout",
    "error",
    "page",
    "mobile",
    "android",
    "ios",
    "sync",
    "calendar",
    "contact",
    "delete",
    "restore",
    "upgrade",
    "plan",
    "trial",
]


@dataclass
class Request:
    request_id: str
    text: str
    tenant: str = "default"
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass
class Result:
    request_id: str
    label: int
    score: float
    evidence: Any = None  # token states, used by the "why this label" panel


def traffic(n: int, seed: int = 3):
    rng = random.Random(seed)
    for i in range(n):
        k = rng.randint(20, 70)
        text = " ".join(rng.choice(WORDS) for _ in range(k))
        yield Request(
            f"req-{i:07d}",
            text,
            tenant=f"t{rng.randint(0, 40)}",
            meta={"src": rng.choice(["web", "mail"])},
        )


def to_public(result: Result) -> dict:
    return {"id": result.request_id, "label": result.label, "score": round(result.score, 4)}


def chunks(it, size: int):
    buf: list[Any] = []
    for x in it:
        buf.append(x)
        if len(buf) == size:
            yield buf
            buf = []
    if buf:
        yield buf
