"""Where Lightning's loops stand after a number of iterations."""

from typing import Any


def rewind(fit_loop: dict[str, Any], iteration: int) -> None:
    """Make a stored fit loop stand after ``iteration`` batches of its only epoch, whenever it was stored.

    A checkpoint may be written after a batch, at the end of the epoch, or when a signal stops the run; Lightning
    stores a different state in each case and goes on from some of them only. A run that ended can so be resumed
    with more iterations.

    Args:
        fit_loop: The state dict of Lightning's fit loop; changed in place.
        iteration: Iterations that are complete.
    """
    epoch = {"ready": 1, "started": 1, "processed": 0, "completed": 0}
    batches = dict.fromkeys(("ready", "started", "processed", "completed"), iteration)
    fit_loop["epoch_progress"] |= {"total": dict(epoch), "current": dict(epoch)}
    fit_loop["epoch_loop.batch_progress"] |= {
        "total": dict(batches),
        "current": dict(batches),
        "is_last_batch": False,
    }
    fit_loop["epoch_loop.state_dict"] |= {"_batches_that_stepped": iteration}
