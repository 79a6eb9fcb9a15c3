"""How near the kit's search comes to each claim of the built-in miners, and what that costs.

    python tests/benchmarks/tightness.py [MINER ...] [--replays N]

One line an example and relation: the largest loss found over the claim, and CPU seconds. No data is opened. What is
known to keep an example below 0.9 stands beside it.
"""

from __future__ import annotations

import argparse
import time

from dpframework.facts.privacy import Relation
from dpframework.study.registry import registry
from dpframework.verify import audit
from dpframework.verify.subject import Subject


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("miners", nargs="*", metavar="MINER")
    parser.add_argument("--replays", type=int, default=12_000)
    given = parser.parse_args()
    for name in given.miners or registry().miners:
        total = 0.0
        for example_name, example in registry().miners[name].component.examples().items():
            for relation in Relation:
                subject = Subject(example.miner, example.schema, relation, delta=example.delta)
                if subject.delta_needed is None:
                    continue
                started = time.process_time()
                report = audit(
                    example.miner,
                    example.schema,
                    relation,
                    delta=example.delta,
                    replays=given.replays,
                    witnesses=example.witnesses,
                )
                seconds = time.process_time() - started
                why = example.loose if report.tightness < 0.9 else ""
                total += seconds
                print(
                    f"{name:15} {example_name:22} {relation:18} {report.tightness:7.4f} {seconds:6.1f} s {why}",
                    flush=True,
                )
        print(f"{name:15} {'':22} {'':18} {'':7} {total:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
