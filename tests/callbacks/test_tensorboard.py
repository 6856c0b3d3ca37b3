"""What reaches the loggers."""

from matplotlib.figure import Figure

from populora.callbacks.tensorboard import (
    forget_after,
    log_figure,
    log_scalars,
    log_text,
    tensorboard_folders,
)


def test_scalars_text_and_figures_come_back(run):
    log_scalars(run.trainer, {"reward/student-0": 0.25}, 3)
    log_text(run.trainer, "note", "lone surrogate \ud800 and ü", 3)
    log_figure(run.trainer, "plot", Figure(figsize=(2, 1), dpi=50), 3)
    events = run.events()
    (scalar,) = events.Scalars("reward/student-0")
    assert (scalar.step, scalar.value) == (3, 0.25)
    assert run.scalars == {("reward/student-0", 3): 0.25}
    (text,) = events.Tensors("note/text_summary")
    assert text.tensor_proto.string_val[0].decode() == "lone surrogate \\ud800 and ü"
    (image,) = events.Images("plot")
    assert (image.width, image.height) == (100, 50)
    assert tensorboard_folders(run.trainer) == [run.folder]


def test_other_processes_and_other_loggers_get_neither_text_nor_figure(run):
    run.trainer.is_global_zero = False
    log_scalars(run.trainer, {"a/b": 1.0}, 1)
    log_text(run.trainer, "note", "text", 1)
    log_figure(run.trainer, "plot", Figure(), 1)
    tags = run.events().Tags()
    assert not run.scalars
    assert not tags["tensors"]
    assert not tags["images"]


def test_a_resumed_run_replaces_what_was_logged_beyond_its_start(run):
    for step in (1, 2, 3, 4):
        log_scalars(run.trainer, {"a/b": float(step)}, step)
    forget_after(run.trainer, 2)
    log_scalars(run.trainer, {"a/b": 30.0}, 3)
    assert [(e.step, e.value) for e in run.events().Scalars("a/b")] == [(1, 1.0), (2, 2.0), (3, 30.0)]
