"""Programs that try to leave, break or cheat the sandbox, run without the screening that would stop most of them.

Each stands in ``attacks``, in a file for what success means; each has to succeed in a plain interpreter and to fail in
the sandbox, in every setting the sandbox may have to work in.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from targets import CANARY, attacks, succeeds_without_confinement

ATTACKS = attacks()
NOBODY = 65_534
DOCKER_CAPABILITIES = (
    "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,"
    "+mknod,+audit_write,+setfcap"
)
READ_ONLY_PROC = (
    "mount --bind /proc /proc && mount -o remount,bind,ro /proc && mount --bind /sys /sys && "
    'mount -o remount,bind,ro /sys && exec "$@"'
)


def readable_by_all(path: str) -> bool:
    return all(os.stat(each).st_mode & 0o001 for each in (path, *Path(path).parents))


def user(*more: str) -> list[str]:
    """Become a plain user; where root alone can read the interpreter, keep the right to read it."""
    kept = "" if readable_by_all(os.path.realpath(sys.executable)) else ",+dac_read_search"
    sets = [f"--{name}={'-all' + kept}" for name in ("bounding-set", "inh-caps", "ambient-caps")]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *sets, *more]


def restrict(profile: str) -> list[str]:
    return [sys.executable, str(HERE / "restrict.py"), profile]


def container(*identity: str) -> list[str]:
    """Docker's default filter, and no writing to /proc and /sys."""
    return ["unshare", "--mount", "sh", "-c", READ_ONLY_PROC, "sh", *restrict("docker"), *identity]


SETTINGS = {
    "as it is": [],
    "plain user": user(),
    "container": container("setpriv", "--inh-caps=-all", f"--bounding-set={DOCKER_CAPABILITIES}"),
    "container, plain user": container(*user("--no-new-privs")),
    "plain user without Landlock": [*restrict("nolandlock"), *user()],
}
MISSING = {
    "as it is": set() if os.geteuid() == 0 else {"own user"},
    "plain user": {"own user"},
    "container": {"namespaces"},
    "container, plain user": {"namespaces", "own user"},
    "plain user without Landlock": {"own user", "Landlock"},
}
"""The layers that each setting has to do without, on a kernel that has them all."""


@cache
def report_of(setting):
    """Run all attacks in a setting, once."""
    prefix = SETTINGS[setting]
    if prefix and os.geteuid() != 0:
        pytest.skip("needs root to become another user and to emulate a container")
    missing = [name for name in ("unshare", "setpriv") if not shutil.which(name)]
    if prefix and missing:
        pytest.skip(f"needs {' and '.join(missing)} of util-linux")
    command = [*prefix, sys.executable, str(HERE / "matrix.py")]
    environment = os.environ | {CANARY: secrets.token_hex(8)}
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_an_attack_is_contained(setting, name):
    report = report_of(setting)
    kind, text = report["outcomes"][name]
    assert not text.startswith(("'escaped", "escaped"))
    assert report["canary"] not in text
    if ATTACKS[name][0] in ("endless", "crashes"):
        assert kind == "failure"


@pytest.mark.parametrize("setting", SETTINGS)
def test_attacks_leave_nothing_behind_and_hurt_no_one(setting):
    report = report_of(setting)
    assert report["honest"] == len(ATTACKS)
    assert report["restarts"] == 0
    assert report["left"] == report["loot"] == report["children"] == []
    assert report["victim"]
    assert report["growth"] < 1 << 20
    assert report["descriptors"] == 0


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_setting_has_all_layers_but_those_it_cannot_have(setting):
    layers = report_of(setting)["layers"]
    assert {name for name, reason in layers.items() if reason} - MISSING[setting] == set()
    if setting in ("container", "plain user without Landlock"):
        assert {name for name, reason in layers.items() if reason} == MISSING[setting]


@cache
def controls():
    """Run all attacks in plain interpreters, once."""
    with ThreadPoolExecutor(4) as threads:
        results = threads.map(lambda attack: succeeds_without_confinement(*attack), ATTACKS.values())
        return dict(zip(ATTACKS, results, strict=True))


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_succeeds_without_confinement(name):
    if name == "overflow_the_stack" and sys.version_info >= (3, 12):
        pytest.skip("since 3.12 the interpreter itself bounds its recursion in C")
    assert controls()[name]
