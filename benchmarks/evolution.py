"""Seconds to make one child at the shapes of Qwen2.5-7B: each operator here, and its like in another implementation.

The other is ``populora`` of PyPI, which has the same import name and so runs in a process of its own, from a folder:

    pip install --target /tmp/peer --no-deps populora==0.4.5 einops torch-einops-utils
    python benchmarks/evolution.py --peer /tmp/peer [--layers 28] [--rank 32] [--rounds 3]

Its DARE and extrapolation mix the factors; ours mix the products and cut the sum back to the rank, which takes a QR and an
SVD a module.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

SHAPES = {
    "q_proj": (3584, 3584), "k_proj": (512, 3584), "v_proj": (512, 3584), "o_proj": (3584, 3584),
    "gate_proj": (18944, 3584), "up_proj": (18944, 3584), "down_proj": (3584, 18944),
}  # fmt: skip
"""(out, in) of the adapted modules of a layer."""
PEERS = {
    "svd_perturb": "mutation_svd_structured",
    "layer_gaussian": "mutation_layer_selective_gaussian",
    "component_mask": "mutation_component_masking",
    "full_gaussian": "mutation_full_gaussian",
    "dare": "crossover_dare",
    "module_select": "crossover_layer_wise",
    "svd_subspace": "crossover_svd_subspace",
    "extrapolate": "crossover_extrapolative",
}
Timing = Iterator[tuple[str, float]]


def factors(layers: int, rank: int, seed: int) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Yield module path, A (rank, in) and B (out, rank)."""
    generator = torch.Generator().manual_seed(seed)
    for layer in range(layers):
        for name, (out, width) in SHAPES.items():
            a = torch.randn(rank, width, generator=generator) / 60
            yield f"layers.{layer}.{name}", a, torch.randn(out, rank, generator=generator) / 100


def best(act: Callable[[], object], rounds: int) -> float:
    """Return the least seconds of some rounds."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def ours(layers: int, rank: int, rounds: int) -> Timing:
    """Time this package's operators, checks and copies included."""
    from populora.population.lowrank import LowRank
    from populora.population.operators import operators

    parents = [{path: LowRank(a, b) for path, a, b in factors(layers, rank, seed)} for seed in range(2)]
    for name in PEERS:
        operator = operators[name]()
        generator = torch.Generator().manual_seed(0)
        yield name, best(lambda: operator(parents[: operator.arity], generator), rounds)  # noqa: B023


def theirs(layers: int, rank: int, rounds: int) -> Timing:
    """Time the other's operators on a population of three: parents 0 and 1, child 2; a mutation acts on the child."""
    from populora import operators

    down: dict[str, torch.nn.Parameter] = {}
    up: dict[str, torch.nn.Parameter] = {}
    for members in zip(*(factors(layers, rank, seed) for seed in (0, 1, 0)), strict=True):
        path = members[0][0]
        down[path] = torch.nn.Parameter(torch.stack([a.T for _, a, _ in members]), requires_grad=False)
        up[path] = torch.nn.Parameter(torch.stack([b for _, _, b in members]), requires_grad=False)
    population: Any = SimpleNamespace(weight_down=down, weight_up=up, device=torch.device("cpu"))
    parents, child = torch.tensor([[0, 1]]), torch.tensor([2])
    for name, peer in PEERS.items():
        operator = getattr(operators, peer)
        arguments = (parents, child) if peer.startswith("crossover") else (child,)
        yield name, best(lambda: operator(population, *arguments), rounds)  # noqa: B023


def measure(side: str, args: argparse.Namespace) -> dict[str, float]:
    """Time one side in a process of its own."""
    command = [sys.executable, __file__, "--side", side]
    command += [f"--layers={args.layers}", f"--rank={args.rank}", f"--rounds={args.rounds}"]
    path = {"PYTHONPATH": args.peer} if side == "theirs" else {}
    output = subprocess.run(command, check=True, capture_output=True, env={**os.environ, **path}).stdout
    result: dict[str, float] = json.loads(output)
    return result


def main() -> None:
    """Time both sides and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", help="folder with the other implementation")
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--side", choices=("ours", "theirs"), help="measure one in this process and write JSON"
    )
    args = parser.parse_args()
    if args.side:
        timing = {"ours": ours, "theirs": theirs}[args.side]
        sys.stdout.write(json.dumps(dict(timing(args.layers, args.rank, args.rounds))))
        return
    own, other = measure("ours", args), measure("theirs", args) if args.peer else {}
    for name, seconds in own.items():
        beside = f"{other[name]:8.2f} s {seconds / other[name]:8.2f}" if other else ""
        sys.stdout.write(f"{name:16} {seconds:8.2f} s {beside}\n")
    if other:
        from figures import report

        report(**{f"child by {name}": seconds / other[name] for name, seconds in own.items()})


if __name__ == "__main__":
    main()
