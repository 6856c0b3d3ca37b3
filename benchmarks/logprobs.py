"""Memory and time of chunked log-probabilities against full float32 logits, forward and backward.

Each variant runs in a process of its own; memory is the peak of the resident set above what the inputs take.

    python benchmarks/logprobs.py [--tokens 4096] [--vocabulary 49152] [--hidden 576] [--repeats 3]
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import torch
from figures import report
from torch import Tensor

from populora.learning.logprobs import completion_logprobs


def full_logprobs(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability and entropy from one (T, V) tensor of float32 logits."""
    table = torch.log_softmax((hidden @ weight.T).float(), dim=-1)
    with torch.no_grad():
        entropy = -(table.exp() * table).sum(-1)
    return table.gather(1, targets[:, None])[:, 0], entropy


def chunked_logprobs(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The same from the library."""
    return completion_logprobs(hidden, weight, None, targets, 1.0)


VARIANTS = {"full": full_logprobs, "chunked": chunked_logprobs}


def measure(variant: str, tokens: int, vocabulary: int, hidden_size: int, repeats: int) -> dict[str, float]:
    """Peak extra memory in MiB and the fastest forward + backward in seconds."""
    torch.manual_seed(0)
    hidden = torch.randn(tokens, hidden_size, requires_grad=True)
    weight = torch.randn(vocabulary, hidden_size) / hidden_size**0.5
    targets = torch.randint(vocabulary, (tokens,))
    (hidden[:8] @ weight[:64].T).sum().backward()  # starts the thread pool and the backward engine
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(repeats):
        hidden.grad = None
        start = time.perf_counter()
        VARIANTS[variant](hidden, weight, targets)[0].mean().backward()
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"mib": (peak - before) / 1024, "seconds": min(seconds)}


def main() -> None:
    """Run both variants and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=8 * 512)
    parser.add_argument("--vocabulary", type=int, default=49152)
    parser.add_argument("--hidden", type=int, default=576)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--variant", choices=VARIANTS, help="measure one in this process and write JSON")
    args = parser.parse_args()
    if args.variant:
        figures = measure(args.variant, args.tokens, args.vocabulary, args.hidden, args.repeats)
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    results = {}
    for variant in VARIANTS:
        command = [sys.executable, __file__, *sys.argv[1:], "--variant", variant]
        results[variant] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        sys.stdout.write(
            f"{variant:8} {results[variant]['mib']:8.0f} MiB {results[variant]['seconds']:8.2f} s\n"
        )
    ratios = [results["chunked"][key] / results["full"][key] for key in ("mib", "seconds")]
    sys.stdout.write(f"{'ratio':8} {ratios[0]:8.3f}     {ratios[1]:8.3f}\n")
    report(**{"log-probabilities, memory": ratios[0], "log-probabilities, time": ratios[1]})


if __name__ == "__main__":
    main()
