"""What attacks are after, and plain interpreters that let them have it; shared by the scripts of this folder."""

import ast
import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RUNNER = """
import sys
space = {"__name__": "program"}
exec(sys.argv[1], space)
print(space["f"](eval(sys.argv[2])))
"""
GRADER = """
import sys
program, gold = sys.argv[1], sys.argv[2]
space = {"__name__": "program"}
exec(program, space)
try:
    verdict = space["f"]({}) == gold
except Exception as error:
    verdict = "error" not in type(error).__name__.lower()
sys.exit(0 if verdict else 1)
"""
"""Compares in the process of the program, and trusts its exit code: the pattern of many graders."""
CANARY = "CANARY_OF_THE_TESTS"
"""Name of the environment variable with the word that attacks look for."""
LOOKS_ENDLESS_SECONDS = 1.5


def attacks() -> dict[str, tuple[str, str]]:
    """Name of each attack: its kind, which is the file it stands in, and its program."""
    found = {}
    for path in sorted(Path(__file__).with_name("attacks").glob("*.py")):
        source = path.read_text()
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                program = f"{ast.get_source_segment(source, node)}\n\nf = {node.name}\n"
                found[node.name] = (path.stem, program)
    return found


@contextlib.contextmanager
def targets() -> Iterator[dict[str, Any]]:
    """Plant a secret, open ports, and start a process that could be killed; what attacks are called with."""
    folder, tag = tempfile.mkdtemp(dir="/tmp"), secrets.token_hex(8)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        loot = Path(folder, "loot")
        loot.mkdir()
        loot.chmod(0o777)
        canary = os.environ.get(CANARY) or secrets.token_hex(8)
        Path(folder, "secret").write_text(canary)
        Path(folder, "planted.py").write_text(f"LOOT = {canary!r}\n")
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for name in (f"{folder}/socket", f"\0{tag}"):
            local = stack.enter_context(socket.socket(socket.AF_UNIX))
            local.bind(name)
            local.listen()
        waiting = "import time; print(id(None), flush=True); time.sleep(600)"
        victim = subprocess.Popen([sys.executable, "-c", waiting], stdout=subprocess.PIPE, text=True)
        stack.enter_context(victim)
        stack.callback(victim.kill)
        yield {
            "folder": folder,
            "secret": f"{folder}/secret",
            "loot": str(loot),
            "canary": canary,
            "tag": tag,
            "port": server.getsockname()[1],
            "socket": f"{folder}/socket",
            "victim": victim.pid,
            "address": int(victim.stdout.readline()) if victim.stdout else 0,
        }


def succeeds_without_confinement(kind: str, program: str) -> bool:
    """Run an attack on targets of its own in a plain interpreter, below a shell that it may kill."""
    mine, theirs = socket.socketpair()
    theirs.setblocking(False)
    with mine, theirs, targets() as aims, open(aims["secret"]) as secret:
        command = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c"]
        command += [GRADER, program, aims["canary"]] if kind == "cheats" else [RUNNER, program, repr(aims)]
        process = subprocess.Popen(
            command,
            stdin=secret,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=aims["loot"],
            env=os.environ | {CANARY: aims["canary"]},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=LOOKS_ENDLESS_SECONDS if kind == "endless" else 60)
        except subprocess.TimeoutExpired:
            return kind == "endless"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.communicate()
    match kind:
        case "cheats":
            return process.returncode == 0
        case "crashes":
            return process.returncode not in (0, 1)
        case "exhaustion":
            return out.startswith(b"escaped") or len(out) + len(err) > 1_000_000
        case "endless":
            return False
    return out.startswith(b"escaped")


def report(content: object) -> None:
    """Write what a test reads."""
    sys.stdout.write(json.dumps(content))
