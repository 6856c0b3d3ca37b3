"""``--dry_run``: what a run would do, need and write, worked out without loading a weight."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from populora.base import locate_config
from populora.cli.settings import Settings
from populora.cli.sizes import DTYPE_BYTES, BaseShape, IterationSize, adapter_parameters
from populora.config import AdapterConfig, BaseConfig, EngineConfig, PopulationConfig, RolloutConfig

Row = tuple[str, str, str]

_MIB = 2**20
_GIB = 2**30


def report(settings: Settings) -> None:
    """Print what the run would do.

    Raises:
        ConfigError: the base is missing, or does not fit the adapters' settings.
    """
    base, population = settings.section(BaseConfig), settings.section(PopulationConfig)
    config_file = locate_config(base)
    shape = BaseShape.read(config_file)
    table = Table(
        title="Dry run: nothing is loaded, nothing is written", title_justify="left", show_header=False
    )
    for section in (
        _population_rows(population, settings.section(AdapterConfig), shape, config_file.parent),
        _iteration_rows(population, settings.section(RolloutConfig), settings["data.iterations"]),
        _memory_rows(settings, shape),
        _output_rows(Path(settings["trainer.default_root_dir"])),
    ):
        for row in section:
            table.add_row(*row)
        table.add_section()
    Console().print(table)


def _population_rows(
    population: PopulationConfig, adapter: AdapterConfig, shape: BaseShape, folder: Path
) -> Iterator[Row]:
    size = adapter_parameters(shape, adapter)
    yield "base", f"{shape.parameters:,} parameters", str(folder)
    if population.shared:
        yield "members", "1", "one adapter plays both roles"
    else:
        yield (
            "members",
            f"{population.size}",
            f"{population.teachers} teachers, {population.students} students",
        )
    yield "adapter", f"{size:,} parameters", f"rank {adapter.rank}, {size / shape.parameters:.1%} of the base"


def _iteration_rows(population: PopulationConfig, rollout: RolloutConfig, iterations: int) -> Iterator[Row]:
    size = IterationSize.of(population, rollout)
    yield "iterations", f"{iterations:,}", f"at most {iterations * size.most_tokens:,} tokens in all"
    yield "matches", f"{size.matches:,} an iteration", "one for each teacher"
    yield (
        "problems",
        f"{size.proposals:,} an iteration",
        f"{len(rollout.tasks)} tasks × {rollout.prompts_per_task} prompts × {rollout.group_size} samples a match",
    )
    yield "attempts", f"{size.attempts:,} an iteration", f"{rollout.attempts} at each problem"
    yield "tokens", f"at most {size.most_tokens:,} an iteration", "generated, before responses end early"


def _memory_rows(settings: Settings, shape: BaseShape) -> Iterator[Row]:
    members = settings.section(PopulationConfig).size
    weights = members * adapter_parameters(shape, settings.section(AdapterConfig))
    accelerated = _accelerated(settings["trainer.accelerator"])
    dtype = settings.section(BaseConfig).dtype
    if dtype == "auto":
        dtype = "bfloat16" if accelerated else "float32"
    width = DTYPE_BYTES[dtype]
    engine, token = settings.section(EngineConfig), shape.cached_values * width
    engines = engine.process_count(accelerated)
    copies = f"{dtype}, in the trainer and {engines} engine process{'es' * (engines > 1)}"
    yield "base in memory", _bytes((1 + engines) * shape.parameters * width), copies
    yield (
        "adapters",
        _bytes(weights * (4 + engines * width)),
        f"float32 in the trainer, {dtype} in the engine",
    )
    yield "gradients, optimizer", _bytes(weights * 12), "float32, two moments of AdamW"
    if accelerated:
        share = f"{engine.gpu_memory_utilization:.0%} of the device less the engine's weights"
        yield "key-value cache", share, f"{_bytes(token)} a token"
    else:
        cache = engines * engine.memory_gib * _GIB
        yield "key-value cache", _bytes(cache), f"{int(cache) // token:,} tokens of {_bytes(token)}"


def _output_rows(root: Path) -> Iterator[Row]:
    state = (
        "has an earlier run, which would be moved aside unless --ckpt_path goes on from it"
        if (root / "config.yaml").exists()
        else "would be made"
    )
    yield "outputs", str(root), state
    yield "", "config.yaml, events.out.tfevents.*, checkpoints/", f"watch with: tensorboard --logdir {root}"


def _accelerated(accelerator: str) -> bool:
    return accelerator in ("gpu", "cuda") or (
        accelerator == "auto" and Path("/proc/driver/nvidia/gpus").is_dir()
    )


def _bytes(count: float) -> str:
    for unit, name in ((_GIB, "GiB"), (_MIB, "MiB"), (1024, "KiB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,.0f} bytes"
