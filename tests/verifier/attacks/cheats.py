"""Programs that make a grader say yes. Control: one that compares in the program's own process does."""


def equal_to_everything(x):
    class Any:
        __eq__ = __bool__ = lambda *_: True
        __ne__ = lambda *_: False
        __hash__ = lambda _: 0
        __repr__ = lambda _: "gold"

    return Any()


def text_equal_to_everything(x):
    class Text(str):
        __eq__ = lambda *_: True
        __hash__ = str.__hash__

    return Text("a")


def number_equal_to_everything(x):
    class Number(int):
        __eq__ = lambda *_: True
        __hash__ = int.__hash__

    return Number(1)


def list_with_a_part_equal_to_everything(x):
    class Part(list):
        __eq__ = lambda *_: True

    return Part([1])


def liar_about_its_class(x):
    """Passes ``isinstance``."""

    class Liar:
        __class__ = property(lambda _: str)
        __eq__ = lambda *_: True

    return Liar()


def class_equal_to_everything(x):
    """Equality of its class, not of itself."""

    class Meta(type):
        __eq__ = lambda *_: True
        __hash__ = lambda _: hash(str)

    return Meta("str", (), {"__eq__": lambda *_: True})()


def patch_the_builtins(x):
    import builtins
    import json

    class Any:
        __eq__ = lambda *_: True

    builtins.repr = builtins.str = lambda *_: "gold"
    builtins.isinstance = builtins.all = lambda *_: True
    builtins.len = lambda _: 1
    json.dumps = lambda *_, **__: "gold"
    return Any()


def patch_the_module_of_the_grader(x):
    import sys

    for module in list(sys.modules.values()):
        if hasattr(module, "gold"):
            module.gold = "mine"
    return "mine"


def look_into_the_frames(x):
    import sys

    frame = sys._getframe()
    while frame is not None:
        for place in (frame.f_locals, frame.f_globals):
            if "gold" in place:
                return place["gold"]
        frame = frame.f_back
    return "not found"


def look_into_a_traceback(x):
    """Frames without ``sys``."""
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame
    while frame is not None:
        if "gold" in frame.f_globals:
            return frame.f_globals["gold"]
        frame = frame.f_back
    return "not found"


def look_through_the_heap(x):
    import gc

    for thing in gc.get_objects():
        if type(thing) is dict and "gold" in thing:
            return thing["gold"]
    return "not found"


def look_at_the_command_line(x):
    import sys

    return sys.argv[2] if len(sys.argv) > 2 else "not found"


def look_into_the_modules(x):
    import sys

    return getattr(sys.modules["__main__"], "gold", "not found")


def rewrite_the_grader_s_variables(x):
    """Leaves the grader an expected answer of its own making."""
    import sys

    frame = sys._getframe(1)
    if "gold" in frame.f_globals:
        frame.f_globals["gold"] = "mine"
    return "mine"


def trace_the_grader(x):
    """Runs code of its own when the grader goes on."""
    import os
    import sys

    def trace(frame, event, argument):
        os._exit(0)

    sys.settrace(trace)
    sys._getframe(1).f_trace = trace
    return "wrong"


def exit_in_good_order(x):
    """What an exit code is all that counts for."""
    import sys

    sys.exit(0)


def exit_in_good_order_and_at_once(x):
    import os

    os._exit(0)


def forge_the_report(x):
    import os

    for line in ("value 'mine'", "correct", "True", '{"passed": true}'):
        for descriptor in (1, 3, 4, 5):
            try:
                os.write(descriptor, f"{line}\n".encode())
            except OSError:
                pass
    os._exit(0)


def forge_at_exit(x):
    import atexit
    import os

    atexit.register(os._exit, 0)
    return "wrong"


def forge_when_released(x):
    import os

    class Late:
        def __del__(self):
            os._exit(0)

    return Late()


def forge_from_a_thread(x):
    """Ends the process in good order while the grader still compares."""
    import os
    import threading
    import time

    class Slow:
        def __eq__(self, other):
            time.sleep(2)

    threading.Thread(target=lambda: (time.sleep(0.2), os._exit(0))).start()
    return Slow()


def raise_what_is_no_error(x):
    """For a grader that calls a status good unless it says error."""
    raise StopIteration
