"""Samples are complete in the file and harmless in TensorBoard."""

import json

import pytest
from tensorboard.plugin_util import markdown_to_safe_html

from populora.callbacks import CompletionSamples
from populora.callbacks.samples import fenced
from populora.errors import ConfigError

NASTY = [
    "```\n<script>alert(1)</script>\n```\n# heading",
    "`````\n**bold** <b>b</b>\r````````\r<i>x</i>",
    "~~~\n<img src=x onerror=y>\n~~~",
    "a\x00b\x1b[31m\u2028<u>c</u>\ud800",
    "    ```text\n<style>p{}</style>\n</code></pre><h1>out</h1>",
    "[link](javascript:alert(1)) | a | b |\n|---|---|\n| 1 | 2 |",
    "",
]


@pytest.mark.parametrize("text", NASTY)
def test_no_text_leaves_its_code_block(text):
    html = markdown_to_safe_html(f"before\n\n{fenced(text)}\n\nafter")
    before, block, after = (
        html.partition("<pre><code")[0],
        html.partition("<pre><code")[2].partition("</code></pre>")[0],
        html.partition("</code></pre>")[2],
    )
    assert (before.strip(), after.strip()) == ("<p>before</p>", "<p>after</p>")
    assert "<" not in block
    for word in ("alert(1)", "heading", "bold", "onerror", "out", "link"):
        assert (word in text) == (word in block)


def test_long_text_is_cut_with_a_note():
    assert "… 4,000 more characters" in fenced("x" * 10_000)


@pytest.mark.parametrize("text", NASTY)
def test_the_file_has_every_character(run, records, text):
    completion = records.completion(text)
    teacher, student = run.population.teachers[0], run.population.students[0]
    problem = records.problem(message=text)
    batch = records.batch(
        proposals=[records.proposal(teacher, problem, solve_rate=0.25, reward=0.75, completion=completion)],
        attempts=[records.attempt(student, False, problem=problem, reward=-0.5, completion=completion)],
    )
    callback = CompletionSamples()
    callback.on_train_start(run.trainer, run.module)
    run.finish_batch(callback, batch)
    proposal, attempt = map(json.loads, callback.path.read_text().splitlines())
    assert proposal["response"] == attempt["response"] == text
    assert proposal["problem"]["message"] == text
    assert (proposal["verdict"], proposal["solve_rate"], proposal["reward"]) == ("valid", 0.25, 0.75)
    assert (attempt["verdict"], attempt["member"], attempt["prompt"]) == ("wrong", "student-0", "7 8")
    assert {"samples/proposals/text_summary", "samples/attempts/text_summary"} <= set(
        run.events().Tags()["tensors"]
    )


def test_samples_are_drawn_when_due_and_as_many_as_asked(run, records):
    student = run.population.students[0]
    attempts = [records.attempt(student, True, completion=records.completion(str(i))) for i in range(10)]
    callback = CompletionSamples(every=3, count=4)
    callback.on_train_start(run.trainer, run.module)
    for iteration in range(7):
        run.finish_batch(callback, records.batch(iteration, attempts=attempts))
    lines = [json.loads(line) for line in callback.path.read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1] * 4 + [3] * 4 + [6] * 4
    drawn = [{line["response"] for line in lines if line["iteration"] == i} for i in (1, 3, 6)]
    assert all(len(texts) == 4 for texts in drawn)
    assert drawn[0] != drawn[1] or drawn[1] != drawn[2]


def test_arguments():
    with pytest.raises(ConfigError, match=r"CompletionSamples\(every=0\)"):
        CompletionSamples(every=0)


def test_samples_beyond_the_iteration_gone_on_from_are_dropped(run, records):
    callback, student = CompletionSamples(every=1, count=1), run.population.students[0]
    callback.on_train_start(run.trainer, run.module)
    for iteration in range(4):
        run.finish_batch(callback, records.batch(iteration, attempts=[records.attempt(student, True)]))
    whole = callback.path.read_text()
    callback.path.write_text(whole + '{"iteration": 2, "cut sho')
    run.module.iteration = 2
    CompletionSamples(every=1, count=1).on_train_start(run.trainer, run.module)
    assert callback.path.read_text().splitlines() == whole.splitlines()[:2]
    for iteration in (2, 3):
        run.finish_batch(callback, records.batch(iteration, attempts=[records.attempt(student, True)]))
    assert callback.path.read_text() == whole
