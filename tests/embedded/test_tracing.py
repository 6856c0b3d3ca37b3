"""Traces against oracles that do not share code with the tracer."""

import ast
import random
import re
import sys

import pytest

from populora.embedded.episodes import backward_trace, forward_trace
from populora.embedded.programs import Sample, draw_steps, input_text, sample
from populora.embedded.tracing import compile_step, run

_END = "_at_end"


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    rng = random.Random(11)
    return [sample(rng, draw_steps(rng), 2) for _ in range(300)]


def call(source: str, text: str) -> object:
    namespace: dict[str, object] = {}
    exec(source, namespace)  # noqa: S102
    return eval(f"f({text})", namespace)


def values_after_statements(item: Sample, values: tuple[object, ...]) -> list[dict[str, object]]:
    """Re-execute each prefix of the program, followed by a return of all locals."""
    found = []
    for end in range(1, item.program.steps + 1):
        body = item.program.body[:end]
        lines = [line for code in body for line in code.split("\n")]
        if lines[-1].startswith("return "):
            lines[-1] = f"{_END} = " + lines[-1].removeprefix("return ")
        source = f"def f({', '.join(item.program.params)}):\n"
        source += "".join(f"    {line}\n" for line in [*lines, "return dict(locals())"])
        locals_ = call(source, input_text(values))
        assert isinstance(locals_, dict)
        found.append(locals_)
    return found


def test_values_equal_those_of_reexecuted_prefixes(samples: list[Sample]) -> None:
    for item in samples:
        for values, trace in zip(item.inputs, item.traces, strict=True):
            for code, note, after in zip(
                item.program.body, trace.notes, values_after_statements(item, values), strict=False
            ):
                name = _END if code.startswith("return ") else compile_step(code).target
                last = re.sub("^(yes|no) ", "", note.split(" ; ")[-1])
                assert ast.literal_eval(last) == after[name], (item.program.source, values)


def test_result_is_that_of_the_program_as_written(samples: list[Sample]) -> None:
    for item in samples:
        for values, trace in zip(item.inputs, item.traces, strict=True):
            assert call(item.program.source, input_text(values)) == trace.result


def test_branches_agree_with_the_lines_python_visits(samples: list[Sample]) -> None:
    checked = 0
    for item in samples:
        visited = visited_lines(item.program.source, input_text(item.inputs[0]))
        line = 2
        for code, note in zip(item.program.body, item.traces[0].notes, strict=True):
            if code.startswith("if "):
                assert note.startswith("yes " if line + 1 in visited else "no "), item.program.source
                checked += 1
            line += code.count("\n") + 1
    assert checked > 50


def visited_lines(source: str, text: str) -> set[int]:
    visited: set[int] = set()
    namespace: dict[str, object] = {}
    exec(compile(source, "<oracle>", "exec"), namespace)  # noqa: S102
    code = compile(f"f({text})", "<call>", "eval")

    def watch(frame, event, _argument):  # type: ignore[no-untyped-def]
        if frame.f_code.co_filename == "<oracle>" and event == "line" and frame.f_code.co_name == "f":
            visited.add(frame.f_lineno)
        return watch

    previous = sys.gettrace()
    sys.settrace(watch)
    try:
        eval(code, namespace)
    finally:
        sys.settrace(previous)
    return visited


@pytest.mark.parametrize(
    ("code", "before", "note"),
    [
        ("for v in x:\n    y += v", [[1, 2], 0], "1 ; 3"),
        ("for v in x:\n    y += v", [[], 4], "4"),
        ("while y > 3:\n    y = y - 2", [[], 8], "6 ; 4 ; 2"),
        ("if y > 3:\n    y = y - 2", [[], 1], "no 1"),
        ("if y > 3:\n    y = y - 2\nelse:\n    y = 5", [[], 1], "no 5"),
        ("for v in x:\n    y.append(v)", [[1, 2], []], "[1] ; [1, 2]"),
    ],
)
def test_note_of_a_statement(code: str, before: list[object], note: str) -> None:
    trace = run(("x", "y"), (code, "return y"), before)
    assert trace is not None
    assert trace.notes[0] == note


def test_traces_repeat_each_statement_on_a_line(samples: list[Sample]) -> None:
    for item in samples:
        statements = [" ".join(line.split()) for line in joined(item)]
        forward = [
            line.partition(" # ")[0] for line in forward_trace(item.program, item.traces[0]).split("\n")
        ]
        backward = [
            line.partition(" # ")[0] for line in backward_trace(item.program, item.traces[0]).split("\n")
        ]
        assert forward == statements
        assert backward == statements[::-1]


def joined(item: Sample) -> list[str]:
    body = item.program.source.split("\n")[1:]
    starts = [i for i, line in enumerate(body) if line[4] != " " and not line.startswith("    else")]
    pieces = [" ".join(body[a:b]) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return pieces[: item.program.steps]


def test_backward_trace_ends_at_the_input(samples: list[Sample]) -> None:
    for item in samples:
        last = backward_trace(item.program, item.traces[0]).split("\n")[-1]
        assert last.rpartition(" # ")[2] == input_text(item.inputs[0])


def test_backward_trace_resumes_to_the_output(samples: list[Sample]) -> None:
    """From the values of any line, the statements from there on give the program's output."""
    for item in samples:
        lines = backward_trace(item.program, item.traces[0]).split("\n")[::-1]
        for start, line in enumerate(lines):
            names = [name for name in item.traces[0].before[start] if name in live_names(item, start)]
            source = f"def f({', '.join(names)}):\n"
            source += "".join(
                f"    {part}\n" for code in item.program.body[start:] for part in code.split("\n")
            )
            assert call(source, line.rpartition(" # ")[2]) == item.traces[0].result


def live_names(item: Sample, start: int) -> set[str]:
    """Names that the rest of the program loads before it stores them, found by Python's own compiler."""
    rest = "\n".join(item.program.body[start:])
    return {
        name
        for name in item.traces[0].before[start]
        if fails_without(rest, {k: v for k, v in item.traces[0].before[start].items() if k != name})
    }


def fails_without(rest: str, scope: dict[str, object]) -> bool:
    source = "def f(" + ", ".join(scope) + "):\n" + "".join(f"    {line}\n" for line in rest.split("\n"))
    try:
        call(source, ", ".join(map(repr, scope.values())))
    except NameError:
        return True
    return False
