"""The lander evaluations with Ray, one task per solution; run by lander_workers.py.

    python benchmarks/ray_peer.py POLICIES.npy SEED WORKERS REPEATS

It imports nothing of qdsweep: its Python is of an environment that has Ray and no qdsweep. Prints
the results and the seconds of each repeat as JSON.
"""

import json
import sys
import tempfile
import time

import numpy as np
import ray
from lander_example import by_make


def main() -> None:
    policies = np.load(sys.argv[1])
    seed, workers, repeats = map(int, sys.argv[2:])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Ray still writes
        ray.init(
            num_cpus=workers,
            include_dashboard=False,
            logging_level="ERROR",
            log_to_driver=False,
            _temp_dir=folder,
        )
        task = ray.remote(by_make)

        def evaluate() -> list[tuple[float, float, float]]:
            return ray.get([task.remote(policy, seed) for policy in policies])

        results, seconds = evaluate(), []  # the first one warms up
        for _ in range(repeats):
            start = time.perf_counter()
            evaluate()
            seconds.append(time.perf_counter() - start)
        ray.shutdown()
    print(json.dumps({"results": results, "seconds": seconds}))


if __name__ == "__main__":
    main()
