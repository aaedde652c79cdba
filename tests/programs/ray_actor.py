"""One Ray actor that keeps a list for a second; prints its pid last."""

import os
import time

import ray

import leakscope.ray_workers


@ray.remote
class Collector:
    def __init__(self):
        self.kept = []

    def collect(self, count):
        for _ in range(count):
            self.kept.append(bytearray(10_000))
            time.sleep(0.005)
        return os.getpid()


if __name__ == "__main__":
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env=leakscope.ray_workers.runtime_env(),
    )
    pid = ray.get(Collector.remote().collect.remote(200))
    ray.shutdown()
    print(pid)
