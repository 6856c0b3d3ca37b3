"""A training step of one adapter: this package, and TRL's GRPOTrainer on the same batch, without generation.

Both start from the same weights and see the same groups of responses with the same advantages; the loss is the mean over
all response tokens, and the step ends with the optimizer's. Each runs in processes of its own, which take turns. A
figure is the best of the turns. Memory is the peak of the resident set above what it was before the first step.

    pip install trl==1.16.0
    python benchmarks/trl_step.py [--base embedded] [--groups 4] [--responses 8] [--prompt 128] [--completion 128]
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from figures import report

from populora.base import load_model, load_tokenizer, locate_base
from populora.config import AdapterConfig, BaseConfig, LearningConfig
from populora.learning.advantages import advantages as estimators
from populora.learning.advantages import sample_advantages
from populora.learning.samples import Sample
from populora.learning.step import gradient_step
from populora.population.bank import AdapterBank
from populora.population.optimizer import build_optimizer
from populora.records import Member, Role

CONFIG = LearningConfig(advantage="grpo", importance_cap=1.0, max_gradient_norm=1e9, mismatch_warning=1e9)
"""Responses are given a vanishing probability in the engine, so that every importance weight is the cap, 1."""
MEMBER = Member("student-0", Role.STUDENT)

Step = Callable[[], float]
"""Takes a step and returns the norm of its gradient."""


@dataclass(frozen=True)
class Figures:
    """What one process measured."""

    seconds: float
    """Of the fastest step but the first."""
    mib: float
    norm: float
    """Of the first gradient."""


def make_samples(args: argparse.Namespace, vocabulary: int) -> list[Sample]:
    """Groups of random responses, each to a random prompt; lengths vary from half of the longest on."""
    rng = random.Random(0)

    def tokens(longest: int) -> tuple[int, ...]:
        return tuple(rng.randrange(3, vocabulary) for _ in range(rng.randint(longest // 2, longest)))

    samples = []
    for group in range(args.groups):
        prompt = tokens(args.prompt)
        for _ in range(args.responses):
            completion = tokens(args.completion)
            unlikely = (-50.0,) * len(completion)
            samples.append(
                Sample(MEMBER, Role.STUDENT, "deduction", group, prompt, completion, unlikely, rng.random())
            )
    return samples


def set_weights(named: dict[str, torch.nn.Parameter]) -> None:
    """Give factors the same weights on both sides."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name in sorted(named):
            named[name].copy_(0.02 * torch.randn(named[name].shape, generator=generator))


def gradient_norm(parameters: list[torch.nn.Parameter]) -> float:
    """Return the norm over all parameters."""
    return float(torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None]))


def ours(args: argparse.Namespace, samples: list[Sample]) -> Step:
    """Return this package's step."""
    base = load_model(locate_base(BaseConfig(args.base)), torch.float32)
    bank = AdapterBank(base, [MEMBER.name], AdapterConfig(args.rank, 2.0 * args.rank), seed=0)
    set_weights(dict(bank.named_factors(MEMBER.name)))
    optimizer = build_optimizer(bank, CONFIG)

    def step() -> float:
        gradient_step(bank, optimizer, samples, CONFIG, 1.0)
        return gradient_norm(bank.parameters_of(MEMBER.name))

    return step


def trl(args: argparse.Namespace, samples: list[Sample]) -> Step:
    """Return GRPOTrainer's step."""
    from datasets import Dataset
    from peft import LoraConfig
    from trl import GRPOConfig, GRPOTrainer

    class Prepared(GRPOTrainer):  # type: ignore[misc]
        def _prepare_inputs(self, generation_batch: Any) -> Any:
            return generation_batch

    path = locate_base(BaseConfig(args.base))
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=len(samples),
        num_generations=args.responses,
        loss_type="bnpo",
        beta=0.0,
        learning_rate=CONFIG.learning_rate,
        max_grad_norm=CONFIG.max_gradient_norm,
        report_to=[],
    )
    trainer = Prepared(
        model=load_model(path, torch.float32),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=config,
        train_dataset=Dataset.from_list([{"prompt": "x"}]),
        processing_class=load_tokenizer(path),
        peft_config=LoraConfig(
            r=args.rank, lora_alpha=2 * args.rank, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
    )
    trainable = {name: p for name, p in trainer.model.named_parameters() if p.requires_grad}
    set_weights(trainable)
    optimizer, inputs = trainer.create_optimizer(), padded(samples)
    trainer.current_gradient_accumulation_steps = 1

    def step() -> float:
        optimizer.zero_grad()
        trainer.training_step(trainer.model, inputs, None)
        norm = float(torch.nn.utils.clip_grad_norm_(trainable.values(), CONFIG.max_gradient_norm))
        optimizer.step()
        return norm

    return step


def padded(samples: list[Sample]) -> dict[str, torch.Tensor]:
    """Return a batch as GRPOTrainer makes it: prompts padded on the left, responses on the right."""
    sides = {
        "prompt": ("left", [torch.tensor(s.prompt_ids) for s in samples]),
        "completion": ("right", [torch.tensor(s.completion_ids) for s in samples]),
    }
    batch = {"advantages": sample_advantages(samples, estimators[CONFIG.advantage])}
    for name, (side, rows) in sides.items():
        pad = torch.nn.utils.rnn.pad_sequence
        batch[f"{name}_ids"] = pad(rows, batch_first=True, padding_side=side)
        ones = [torch.ones_like(row) for row in rows]
        batch[f"{name}_mask"] = pad(ones, batch_first=True, padding_side=side)
    return batch


CONTESTANTS = {"ours": ours, "trl": trl}


def resident_mib(field: str) -> float:
    """Return a line of this process's status, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def measure(args: argparse.Namespace) -> Figures:
    """Let one contestant take its steps."""
    vocabulary = len(load_tokenizer(locate_base(BaseConfig(args.base))))
    samples = make_samples(args, vocabulary)
    step = CONTESTANTS[args.contestant](args, samples)
    Path("/proc/self/clear_refs").write_text("5")
    before, norm, seconds = resident_mib("VmRSS"), step(), []
    for _ in range(args.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return Figures(min(seconds), resident_mib("VmHWM") - before, norm)


def main() -> None:
    """Measure both in turns and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default="embedded")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--responses", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=128, help="longest prompt; the shortest is half of it")
    parser.add_argument("--completion", type=int, default=128)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--contestant", choices=CONTESTANTS, help="measure one in this process")
    args = parser.parse_args()
    if args.contestant:
        sys.stdout.write(json.dumps(vars(measure(args))) + "\n")
        return
    found: dict[str, list[Figures]] = {name: [] for name in CONTESTANTS}
    for _ in range(args.turns):
        for name in CONTESTANTS:
            command = [sys.executable, __file__, *sys.argv[1:], "--contestant", name]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found[name].append(Figures(**json.loads(output.splitlines()[-1])))
    norms = [figures.norm for turns in found.values() for figures in turns]
    if max(norms) > (1 + 1e-3) * min(norms):
        raise SystemExit(f"gradient norms differ: {norms}")
    seconds = {name: min(f.seconds for f in turns) for name, turns in found.items()}
    mib = {name: min(f.mib for f in turns) for name, turns in found.items()}
    for name in CONTESTANTS:
        sys.stdout.write(f"{name:5} {1000 * seconds[name]:8.0f} ms {mib[name]:8.0f} MiB\n")
    base = Path(args.base).name
    report(
        **{
            f"step of TRL, {base}, time": seconds["ours"] / seconds["trl"],
            f"step of TRL, {base}, memory": mib["ours"] / mib["trl"],
        }
    )


if __name__ == "__main__":
    main()
