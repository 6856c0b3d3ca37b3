"""Training episodes: a prompt in one of the six formats and a worked response."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from jinja2 import Environment, StrictUndefined, Template

from populora.embedded.programs import STEP_WEIGHTS, Program, Sample, draw_steps, input_text, sample
from populora.embedded.tracing import Trace, compile_step, live_before

Task = Literal["deduction", "abduction", "induction"]
Role = Literal["propose", "solve"]

INDUCTION_INPUTS = 10
SHOWN_PAIRS = 5
MIXTURE: dict[tuple[Role, Task], float] = {
    ("solve", "deduction"): 0.40,
    ("solve", "abduction"): 0.20,
    ("solve", "induction"): 0.20,
    ("propose", "deduction"): 0.06,
    ("propose", "abduction"): 0.06,
    ("propose", "induction"): 0.08,
}
_REFERENCE_WEIGHTS = (0.5, 0.25, 0.15, 0.1)


@dataclass(frozen=True, slots=True)
class Reference:
    """An earlier problem shown to a proposer."""

    program: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Episode:
    """A prompt and the response to learn, both without chat markup."""

    role: Role
    task: Task
    prompt: str
    response: str


@cache
def _template(name: str) -> Template:
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
    )
    path = files("populora.tasks") / "templates" / "compact" / f"{name}.j2"
    return environment.from_string(path.read_text(encoding="utf-8"))


def render_prompt(role: Role, task: Task, **variables: Any) -> str:
    """Renders the compact prompt of a role and task."""
    return _template(f"{role}_{task}").render(variables)


def fenced(label: str, text: str) -> str:
    """Wraps text in a labelled fence."""
    return f"```{label}\n{text}\n```"


def respond(thought: str, *blocks: str) -> str:
    """Lays out a response: a thought, then fenced blocks as the answer."""
    answer = "\n".join(blocks)
    return f"<think>\n{thought}\n</think>\n<answer>\n{answer}\n</answer>"


def _counted(program: Program) -> range:
    return range(program.steps)


def forward_trace(program: Program, trace: Trace) -> str:
    """Writes each statement with the value it left."""
    return "\n".join(f"{compile_step(program.body[i]).line} # {trace.notes[i]}" for i in _counted(program))


def backward_trace(program: Program, trace: Trace) -> str:
    """Writes the statements from last to first, each with the live values before it."""
    live = live_before(program.body)
    lines = []
    for i in reversed(_counted(program)):
        values = [value for name, value in trace.before[i].items() if name in live[i]]
        lines.append(f"{compile_step(program.body[i]).line} # {input_text(values)}")
    return "\n".join(lines)


def plan(program: Program, trace: Trace) -> str:
    """Writes a proposer's plan: number of statements, types in and out."""
    kind = {int: "int", list: "list", str: "str"}[type(trace.result)]
    return f"{program.steps} steps: {', '.join(program.kinds)} -> {kind}"


def solve_deduction(item: Sample) -> Episode:
    """An episode that runs a program on an input."""
    program, trace = item.program, item.traces[0]
    prompt = render_prompt("solve", "deduction", program=program.source, input=input_text(item.inputs[0]))
    answer = fenced("output", repr(trace.result))
    return Episode("solve", "deduction", prompt, respond(forward_trace(program, trace), answer))


def solve_abduction(item: Sample) -> Episode:
    """An episode that works back from an output to an input."""
    program, trace = item.program, item.traces[0]
    prompt = render_prompt("solve", "abduction", program=program.source, output=repr(trace.result))
    answer = fenced("input", input_text(item.inputs[0]))
    return Episode("solve", "abduction", prompt, respond(backward_trace(program, trace), answer))


def solve_induction(item: Sample) -> Episode:
    """An episode that finds a program from examples and a message."""
    program = item.program
    pairs = [
        (input_text(values), repr(trace.result))
        for values, trace in zip(item.inputs[:SHOWN_PAIRS], item.traces[:SHOWN_PAIRS], strict=True)
    ]
    prompt = render_prompt("solve", "induction", examples=pairs, message=program.message)
    thought = forward_trace(program, item.traces[0])
    answer = fenced("python", program.source)
    return Episode("solve", "induction", prompt, respond(thought, answer))


_SOLVE: dict[Task, Callable[[Sample], Episode]] = {
    "deduction": solve_deduction,
    "abduction": solve_abduction,
    "induction": solve_induction,
}


def hasty(episode: Episode) -> Episode:
    """Leaves out the thought of a response."""
    _, _, answer = episode.response.partition("\n</think>\n")
    return replace(episode, response=f"<think>\n</think>\n{answer}")


def propose_program(task: Task, item: Sample, references: Sequence[Reference]) -> Episode:
    """An episode that writes a program and an input, for deduction or abduction."""
    prompt = render_prompt("propose", task, references=references)
    response = respond(
        plan(item.program, item.traces[0]),
        fenced("python", item.program.source),
        fenced("input", input_text(item.inputs[0])),
    )
    return Episode("propose", task, prompt, response)


def propose_induction(item: Sample) -> Episode:
    """An episode that writes inputs and a message for a given program."""
    program = item.program
    prompt = render_prompt("propose", "induction", program=program.source, n_inputs=INDUCTION_INPUTS)
    blocks = [fenced("input", input_text(values)) for values in item.inputs[:INDUCTION_INPUTS]]
    blocks.append(fenced("message", program.message))
    return Episode("propose", "induction", prompt, respond(", ".join(program.kinds), *blocks))


def random_references(rng: random.Random, weights: Sequence[float]) -> list[Reference]:
    """Draws zero to three references."""
    count = rng.choices(range(len(_REFERENCE_WEIGHTS)), _REFERENCE_WEIGHTS)[0]
    items = [sample(rng, draw_steps(rng, weights), 1) for _ in range(count)]
    return [Reference(i.program.source, (input_text(i.inputs[0]),)) for i in items]


_KEYS, _SHARES = list(MIXTURE), list(MIXTURE.values())


def random_episode(
    rng: random.Random, weights: Sequence[float] = STEP_WEIGHTS, haste: float = 0.0
) -> Episode:
    """Draws an episode of the training mixture.

    Args:
        rng: Source of randomness.
        weights: Relative frequencies of programs of 1, 2, ... statements.
        haste: Share of the solved problems that are answered without a thought.
    """
    role, task = rng.choices(_KEYS, _SHARES)[0]
    steps = draw_steps(rng, weights)
    inputs = 1
    if task == "induction":
        inputs = INDUCTION_INPUTS if role == "propose" else SHOWN_PAIRS
    item = sample(rng, steps, inputs)
    if role == "propose":
        if task == "induction":
            return propose_induction(item)
        return propose_program(task, item, random_references(rng, weights))
    episode = _SOLVE[task](item)
    return hasty(episode) if haste and rng.random() < haste else episode
