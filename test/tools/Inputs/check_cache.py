"""check_cache.py FOLDER FSDPC MODEL: a runtime library in the cache that another user could have changed is not used.

FOLDER has lib/, an installed compiler's library, and own/, a cache with one built runtime whose compiler is a script that says so.
"""

import os
import pathlib
import shutil
import subprocess
import sys

FOLDER, FSDPC, MODEL = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
USER = os.geteuid()


def compile_with(cache):
    """What the compiler says, its cache below `cache`."""
    environment = dict(os.environ, XDG_CACHE_HOME=str(cache), LD_LIBRARY_PATH=str(FOLDER / "lib"),
                       PATH=f"{FOLDER}/fake:{os.environ['PATH']}")
    done = subprocess.run([FSDPC, MODEL, "-o", str(FOLDER / "never")], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def refused(change, fault):
    """A copy of the cache with `change` is refused, with `fault` of the path that it returns; nothing of it runs."""
    cache = FOLDER / "changed"
    shutil.rmtree(cache, ignore_errors=True)
    shutil.rmtree(FOLDER / "elsewhere", ignore_errors=True)
    shutil.copytree(FOLDER / "own", cache)
    at = change(cache / "fsdpc")
    status, said = compile_with(cache)
    expected = (f"fsdpc: error: the cache of the runtime library must belong to this user alone: '{at}' {fault}; correct that, or set "
                f"XDG_CACHE_HOME to another folder\n")
    assert (status, said) == (1, expected), f"{status}\n{said}\nexpected\n{expected}"


def built(cache):
    """The one runtime in the cache."""
    return next(p for p in cache.iterdir() if (p / "toolchain.json").exists())


def writable(which, mode):
    def change(cache):
        path = which(cache)
        path.chmod(mode)
        return path
    return change


def linked(which):
    def change(cache):
        path = which(cache)
        path.rename(FOLDER / "elsewhere")
        path.symlink_to(FOLDER / "elsewhere")
        return path
    return change


def given(which):
    def change(cache):
        path = which(cache)
        os.chown(path, USER + 1, -1)
        return path
    return change


for level in (lambda cache: cache, built):
    refused(writable(level, 0o777), "has mode 0777, so that others can write to it")
    refused(writable(level, 0o770), "has mode 0770, so that others can write to it")
    refused(linked(level), "is a link")
refused(writable(lambda cache: built(cache) / "toolchain.json", 0o660), "has mode 0660, so that others can write to it")
# A user who can rename the folder can replace it after it has been checked.
refused(writable(lambda cache: cache.parent, 0o777), "has mode 0777, so that others can rename its files")
refused(writable(lambda cache: cache.parent, 0o702), "has mode 0702, so that others can rename its files")
(FOLDER / "changed").chmod(0o1777)
status, said = compile_with(FOLDER / "changed")
assert "the planted compiler runs" in said, said
if USER == 0:
    refused(given(lambda cache: cache.parent), "belongs to user 1, not to user 0")
    for level in (lambda cache: cache, built, lambda cache: built(cache) / "toolchain.json"):
        refused(given(level), "belongs to user 1, not to user 0")
status, said = compile_with(FOLDER / "own")
assert "the planted compiler runs" in said, said
