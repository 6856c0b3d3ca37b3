import random
from pathlib import Path

import pytest

from populora.config import RolloutConfig
from populora.errors import ConfigError
from populora.records import Draft, Problem
from populora.tasks import Prompts, configured, tasks
from populora.tasks.base import Trial, hidden, visible
from populora.tasks.buffer import ProblemBuffer
from populora.tasks.induction import Induction

PROGRAM = "def f(x):\n    return x * 2"
DOUBLE = Problem("deduction", PROGRAM, ("3",), ("6",))
PAIRS = Problem("induction", PROGRAM, ("1", "2", "3", "4"), ("2", "4", "6", "8"), "twice")


def respond(*blocks: tuple[str, str]) -> str:
    body = "\n".join(f"```{label}\n{text}\n```" for label, text in blocks)
    return f"<think>\nhm\n</think>\n<answer>\n{body}\n</answer>"


@pytest.fixture(scope="module")
def prompts(tiny_base: Path) -> Prompts:
    from transformers import AutoTokenizer

    return Prompts.load("chat", AutoTokenizer.from_pretrained(tiny_base))


def test_deduction_compares_literals_type_strictly() -> None:
    task = tasks["deduction"]
    for text, correct in (("6", True), (" 0x6 ", True), ("6.0", False), ("7", False), ("'6'", False)):
        answer = task.read_answer(respond(("output", text)))
        assert answer is not None
        assert task.trial(DOUBLE, answer) is correct
    assert task.trial(Problem("deduction", PROGRAM, ("8",), ("16",)), "6") is False
    assert task.read_answer(respond(("output", "x * 2"))) is None
    assert task.read_answer(respond(("input", "6"))) is None


def test_abduction_runs_the_problem_on_the_answer() -> None:
    task = tasks["abduction"]
    answer = task.read_answer(respond(("input", "[1,2],  'a'")))
    assert answer == "[1, 2], 'a'"
    assert task.trial(DOUBLE, answer) == Trial(PROGRAM, ("[1, 2], 'a'",), ("6",))
    assert task.read_answer(respond(("input", "0) or (True"))) is None
    assert task.read_answer(respond(("output", "1"))) is None


def test_induction_runs_the_answer_on_the_hidden_half() -> None:
    task = tasks["induction"]
    answer = task.read_answer(respond(("python", "def f(x): return 0"), ("python", "def f(x): return x + x")))
    assert answer == "def f(x): return x + x"
    assert task.trial(PAIRS, answer) == Trial("def f(x): return x + x", ("3", "4"), ("6", "8"))
    assert task.read_answer(respond(("input", "1"))) is None


def test_an_odd_pair_is_hidden() -> None:
    problem = Problem("induction", PROGRAM, ("1", "2", "3"), ("2", "4", "6"), "")
    assert visible(problem) == (("1", "2"),)
    assert hidden(problem) == (("2", "4"), ("3", "6"))


@pytest.mark.parametrize("name", ["deduction", "abduction"])
def test_a_proposal_is_a_program_and_one_input(name: str) -> None:
    text = respond(("python", PROGRAM), ("input", "{2,1}"))
    assert tasks[name].read_proposal(text, ()) == Draft(name, PROGRAM, ("{1, 2}",))
    assert tasks[name].read_proposal(respond(("python", PROGRAM)), ()) is None


def test_an_induction_proposal_takes_the_first_distinct_readable_inputs() -> None:
    task = Induction(inputs=2)
    inputs = [("input", text) for text in ("1", "g(2)", " 1 ", "True", "3")]
    text = respond(*inputs, ("message", "  twice\nit "))
    assert task.read_proposal(text, [DOUBLE]) == Draft("induction", PROGRAM, ("1", "True"), "  twice\nit ")
    assert task.read_proposal(respond(*inputs), [DOUBLE]) is None
    assert task.read_proposal(respond(*inputs[:3], ("message", "twice")), [DOUBLE]) is None
    with pytest.raises(ValueError, match="reference program"):
        task.read_proposal(text, [])


def test_prompts_say_what_the_solver_may_know(prompts: Prompts) -> None:
    problem = Problem(
        "deduction", "def f(x):\n    return [x, 'marker']", ("'given'",), ("['given', 'marker']",)
    )
    seen = {name: tasks[name].solve(prompts, problem) for name in ("deduction", "abduction")}
    assert "'given'\n" in seen["deduction"]
    assert problem.outputs[0] not in seen["deduction"]
    assert problem.outputs[0] in seen["abduction"]
    assert "\n'given'\n" not in seen["abduction"]

    pairs = Problem("induction", PROGRAM, ("'in0'", "'in1'"), ("'out0'", "'out1'"), "the hint")
    induced = tasks["induction"].solve(prompts, pairs)
    assert all(text in induced for text in ("'in0'", "'out0'", "the hint"))
    assert not any(text in induced for text in ("'in1'", "'out1'", "x * 2"))


def test_proposal_prompts_show_the_references(prompts: Prompts) -> None:
    other = Problem("deduction", "def f(y):\n    return -y", ("41",), ("-41",))
    for name in ("deduction", "abduction"):
        text = tasks[name].propose(prompts, [DOUBLE, other])
        assert PROGRAM in text
        assert "\n41\n" in text
        assert "\n-41\n" in text
        assert "exist already" not in tasks[name].propose(prompts, [])
    text = Induction(inputs=7).propose(prompts, [DOUBLE])
    assert PROGRAM in text
    assert "7 different inputs" in text


def test_references_come_from_the_same_task_but_induction_takes_any_program() -> None:
    buffer = ProblemBuffer(9)
    buffer.add([DOUBLE, PAIRS])
    assert tasks["deduction"].references(buffer, 6, random.Random(0)) == [DOUBLE]
    assert tasks["abduction"].references(buffer, 6, random.Random(0)) == []
    assert [p.program for p in tasks["induction"].references(buffer, 6, random.Random(0))] == [PROGRAM]


def test_a_run_configures_its_tasks() -> None:
    chosen = configured(RolloutConfig(tasks=["induction", "deduction"], induction_inputs=4))
    assert list(chosen) == ["induction", "deduction"]
    assert chosen["induction"] == Induction(inputs=4)
    assert chosen["deduction"] is tasks["deduction"]
    with pytest.raises(ConfigError, match="did you mean 'deduction'"):
        configured(RolloutConfig(tasks=["deductions"]))
