"""Forward and backward of one mixed batch of eight adapters: this package, and PEFT in its two ways.

``loop`` calls PEFT's ``set_adapter`` and runs each adapter's rows by themselves; ``names`` runs all rows at once with
``adapter_names``, which PEFT offers in evaluation mode. All start from the same weights, get the same loss, and must end
with the same gradients. They take turns; a figure is the best of the rounds. Responses to one prompt share it, as in a
rollout; ``--distinct`` gives each a prompt of its own.

    python benchmarks/train_step.py [--base embedded] [--sequences 16] [--adapters 8] [--rank 16] [--distinct]
"""

import argparse
import copy
import random
import sys
import time
from collections.abc import Callable, Sequence

import torch
from figures import report
from peft import LoraConfig, get_peft_model
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from populora.base import load_model, locate_base
from populora.config import AdapterConfig, BaseConfig, LearningConfig
from populora.learning.advantages import advantages as estimators
from populora.learning.advantages import sample_advantages
from populora.learning.samples import Sample
from populora.learning.step import gradient_step
from populora.population.bank import AdapterBank
from populora.population.optimizer import build_optimizer
from populora.records import Member, Role

CONFIG = LearningConfig(max_gradient_norm=1e9, mismatch_warning=1e9)


def make_samples(args: argparse.Namespace, vocabulary: int) -> list[Sample]:
    """Random sequences of like, not equal, lengths; one group a member."""
    rng = random.Random(0)
    samples = []
    for index in range(args.adapters):
        prompt = ()
        for _ in range(args.sequences // args.adapters):
            if args.distinct or not prompt:
                length = rng.randint(args.prompt // 2, args.prompt)
                prompt = tuple(rng.randrange(3, vocabulary) for _ in range(length))
            length = rng.randint(args.completion // 2, args.completion)
            completion = tuple(rng.randrange(3, vocabulary) for _ in range(length))
            samples.append(
                Sample(
                    Member(f"student-{index}", Role.STUDENT),
                    Role.STUDENT,
                    "deduction",
                    index,
                    prompt,
                    completion,
                    (-8.0,) * length,
                    rng.random(),
                )
            )
    return samples


def plain_loss(logits: Tensor, samples: Sequence[Sample], scales: Sequence[float]) -> Tensor:
    """The clipped loss of a first update, from full logits in float32; scale is advantage over the member's tokens."""
    table = torch.log_softmax(logits.float(), -1)
    total = logits.new_zeros(())
    for row, (sample, scale) in enumerate(zip(samples, scales, strict=True)):
        start = len(sample.prompt_ids) - 1
        targets = torch.tensor(sample.completion_ids)
        logprobs = table[row, start : start + len(targets)].gather(1, targets[:, None])[:, 0]
        importance = (
            (logprobs.detach() - torch.tensor(sample.logprobs)).exp().clamp(max=CONFIG.importance_cap)
        )
        total = total - (importance * scale * (logprobs - logprobs.detach()).exp()).sum()
    return total


class Peft:
    """PEFT with the bank's adapters on a base of its own."""

    def __init__(self, base: torch.nn.Module, bank: AdapterBank) -> None:
        settings = {"r": bank.config.rank, "lora_alpha": bank.config.alpha, "target_modules": "all-linear"}
        self.model = get_peft_model(base, LoraConfig(**settings, task_type="CAUSAL_LM"), bank.names[0])
        for name in bank.names[1:]:
            self.model.add_adapter(name, LoraConfig(**settings, task_type="CAUSAL_LM"))
        self.model.eval()
        parameters = dict(self.model.named_parameters())
        self.factors = {
            name: [parameters[f"base_model.model.{path[:-2]}.lora_{path[-1].upper()}.{name}.weight"]
                   for path, _ in bank.named_factors(name)]
            for name in bank.names
        }  # fmt: skip
        with torch.no_grad():
            for name in bank.names:
                for own, other in zip(self.factors[name], bank.parameters_of(name), strict=True):
                    own.copy_(other)

    def clear(self) -> None:
        """Forget gradients."""
        for factors in self.factors.values():
            for factor in factors:
                factor.grad = None

    def run(self, samples: Sequence[Sample], scales: Sequence[float], **kwargs: object) -> None:
        """Forward and backward of padded rows."""
        rows = [torch.tensor(s.prompt_ids + s.completion_ids[:-1]) for s in samples]
        ids = pad_sequence(rows, batch_first=True)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False, **kwargs).logits
        plain_loss(logits, samples, scales).backward()

    def loop(self, samples: Sequence[Sample], scales: Sequence[float]) -> None:
        """One adapter after the other."""
        for name in self.factors:
            self.model.set_adapter(name)
            own = [i for i, sample in enumerate(samples) if sample.member.name == name]
            self.run([samples[i] for i in own], [scales[i] for i in own])

    def names(self, samples: Sequence[Sample], scales: Sequence[float]) -> None:
        """All at once."""
        for factors in self.factors.values():
            for factor in factors:
                factor.requires_grad_(True)
        self.run(samples, scales, adapter_names=[s.member.name for s in samples])


def largest_difference(bank: AdapterBank, peft: Peft) -> float:
    """Return the largest relative difference of a member's gradients."""
    differences = []
    for name in bank.names:
        pairs = zip(bank.parameters_of(name), peft.factors[name], strict=True)
        ours, theirs = (
            torch.cat(each)
            for each in zip(*((a.grad.flatten(), b.grad.flatten()) for a, b in pairs), strict=True)
        )
        differences.append(float((ours - theirs).norm() / theirs.norm()))
    return max(differences)


def seconds(act: Callable[[], object]) -> tuple[float, float]:
    """Return wall clock and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Measure and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default="embedded")
    parser.add_argument("--adapters", type=int, default=8)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=64, help="longest prompt; the shortest is half of it")
    parser.add_argument("--completion", type=int, default=64)
    parser.add_argument("--distinct", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    base = load_model(locate_base(BaseConfig(args.base)), torch.float32)
    peft_base = copy.deepcopy(base)
    samples = make_samples(args, base.config.vocab_size)
    names = [f"student-{i}" for i in range(args.adapters)]
    bank = AdapterBank(base, names, AdapterConfig(args.rank, 2.0 * args.rank), seed=0)
    for name in names:
        for parameter in bank.parameters_of(name):
            torch.nn.init.normal_(parameter, std=0.02)
    peft, optimizer = Peft(peft_base, bank), build_optimizer(bank, CONFIG)
    advantages = sample_advantages(samples, estimators[CONFIG.advantage]).tolist()
    tokens = {name: sum(len(s.completion_ids) for s in samples if s.member.name == name) for name in names}
    scales = [a / tokens[s.member.name] for s, a in zip(samples, advantages, strict=True)]
    contestants: dict[str, Callable[[], object]] = {
        "ours": lambda: gradient_step(bank, optimizer, samples, CONFIG, 1.0, step=lambda: None),
        "loop": lambda: peft.loop(samples, scales),
        "names": lambda: peft.names(samples, scales),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(args.rounds + 1):
        for name, act in contestants.items():
            peft.clear()
            taken[name].append(seconds(act))
            if name != "ours":
                difference = largest_difference(bank, peft)
                if difference > 1e-3:
                    raise SystemExit(f"{name}: gradients differ by {difference:.1e}")
    best = {name: [min(part) for part in zip(*rounds[1:], strict=True)] for name, rounds in taken.items()}
    sys.stdout.write(f"{len(samples)} sequences, gradients equal to {difference:.0e}\n")
    for name, (wall, cpu) in best.items():
        ratios = wall / best["ours"][0], cpu / best["ours"][1]
        sys.stdout.write(
            f"{name:6} {1000 * wall:8.1f} ms {1000 * cpu:8.1f} ms CPU   ours is {ratios[0]:.2f} times as fast, "
            f"{ratios[1]:.2f} by CPU\n"
        )
    kind = "distinct" if args.distinct else "shared"
    report(
        **{
            f"step of peft {name}, {kind} prompts": best["ours"][0] / best[name][0]
            for name in ("loop", "names")
        }
    )


if __name__ == "__main__":
    main()
