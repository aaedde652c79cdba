#!/usr/bin/env python
"""Ticket triage: classify support tickets, keep results until the frontend polls for them."""

import logging
import time
import zlib

import torch
import torch.nn as nn
from schema import Request, Result, chunks, to_public, traffic

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(name)s: %(message)s")
log = logging.getLogger("triage")


class Settings:
    batch_size = 16
    max_len = 48
    vocab = 4096
    dim = 64
    n_labels = 12
    batches = 600
    threads = 1


class Encoder(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.emb = nn.Embedding(s.vocab, s.dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(s.dim, 4, 2 * s.dim, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(s.dim, s.n_labels)

    def forward(self, ids):
        states = self.body(self.emb(ids))
        return self.head(states.mean(1)), states


class Preprocessor:
    def __init__(self, s: Settings):
        self.s = s

    def tokenize(self, text: str) -> list[int]:
        # poor man's hashing tokenizer; good enough for tickets
        return [1 + zlib.crc32(w.encode()) % (self.s.vocab - 1) for w in text.lower().split()]

    def __call__(self, requests: list[Request]) -> torch.Tensor:
        out = torch.zeros(len(requests), self.s.max_len, dtype=torch.long)
        for row, r in enumerate(requests):
            ids = self.tokenize(r.text)[: self.s.max_len]
            out[row, : len(ids)] = torch.tensor(ids)
        return out


class ResultStore:
    """Polled by the frontend. Results live here between `put` and `fetch`."""

    def __init__(self):
        self._by_id: dict[str, Result] = {}
        self.delivered = 0

    def put(self, result: Result) -> None:
        self._by_id[result.request_id] = result

    def fetch(self, request_id: str) -> dict | None:
        hit = self._by_id.get(request_id)
        if hit is None:
            return None
        self.delivered += 1
        return to_public(hit)


class TriageService:
    def __init__(self, settings: Settings):
        self.settings = settings
        self.pre = Preprocessor(settings)
        self.model = Encoder(settings).eval()
        self.store = ResultStore()
        self.timings = []
        self.by_label = [0] * settings.n_labels

    @torch.no_grad()
    def handle(self, requests: list[Request]) -> None:
        t0 = time.perf_counter()
        ids = self.pre(requests)
        logits, states = self.model(ids)
        probs = logits.softmax(-1)
        scores, labels = probs.max(-1)
        for i, r in enumerate(requests):
            label = int(labels[i])
            self.by_label[label] += 1
            result = Result(r.request_id, label, float(scores[i]), evidence=states[i])
            self.store.put(result)
        took = time.perf_counter() - t0
        for r in requests:
            self.timings.append(
                {
                    "id": r.request_id,
                    "tenant": r.tenant,
                    "chars": len(r.text),
                    "text": r.text,
                    "s": took / len(requests),
                }
            )

    def p95(self) -> float:
        tail = sorted(t["s"] for t in list(self.timings)[-500:])
        return tail[int(0.95 * (len(tail) - 1))] if tail else 0.0


def poll(service: TriageService, ids: list[str]) -> int:
    got = 0
    for rid in ids:
        answer = service.store.fetch(rid)
        if answer is not None:
            got += 1
    return got


def main() -> None:
    torch.manual_seed(0)
    s = Settings()
    torch.set_num_threads(s.threads)
    service = TriageService(s)
    log.info("model has %d parameters", sum(p.numel() for p in service.model.parameters()))
    waiting: list[str] = []
    for n, batch in enumerate(chunks(traffic(s.batches * s.batch_size), s.batch_size), 1):
        service.handle(batch)
        waiting.extend(r.request_id for r in batch)
        # the frontend polls about two batches behind
        if len(waiting) > 2 * s.batch_size:
            ready, waiting = waiting[: s.batch_size], waiting[s.batch_size :]
            poll(service, ready)
        if n % 60 == 0:
            log.info(
                "batch %d delivered=%d p95=%.2fms", n, service.store.delivered, 1e3 * service.p95()
            )
    poll(service, waiting)
    log.info("done, delivered %d, labels %s", service.store.delivered, service.by_label)


if __name__ == "__main__":
    main()
