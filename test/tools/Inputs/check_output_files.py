#!/usr/bin/env python3
"""check_output_files.py FSDPC MODEL SCRATCH: what the compiler does with the files of its command line.

Every rule of docs/files.md that is the compiler's, each in a folder of its own. All cases run; the failing
ones are listed at the end.
"""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))
import file_cases
from file_cases import case, expect, read_fifo, Wrong

LIMIT = 1200  # seconds; lit ends a test that hangs before


class Compiler(file_cases.Folder):
    """Runs of the compiler, with a folder for its temporary files beside the case's own."""

    def __init__(self, folder, tool, model):
        super().__init__(folder, LIMIT)
        self.tool, self.model = tool, model
        self.temporary = folder.with_name(folder.name + ".tmp")
        self.temporary.mkdir()

    def command(self, *words, model=None):
        return [str(word) for word in (self.tool, model or self.model, *words)]

    def environment(self):
        return {**os.environ, "TMPDIR": str(self.temporary)}

    def run(self, *words, model=None, env=(), **options):
        return self.run_command(self.command(*words, model=model), env={**self.environment(), **dict(env)}, **options)

    def text(self):
        return self.run("--emit=global").stdout

@case
def a_device_is_written_to_and_stays(compiler):
    null = compiler.at("null")
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        print("not shown: devices cannot be made here")
        return
    compiler.run("--emit=global", "-o", null, f"--report={null}")
    expect(stat.S_ISCHR(os.stat(null).st_mode), "the device was replaced")
    compiler.run("-o", null)
    expect(stat.S_ISCHR(os.stat(null).st_mode), "the device was replaced by a program")
    expect(compiler.left() == ["null"], f"left behind: {compiler.left()}")


@case
def a_fifo_is_written_to_its_reader(compiler):
    fifo = compiler.at("fifo")
    os.mkfifo(fifo)
    compiler.run("--emit=global", "-o", fifo, status=1, says="no process reads this FIFO")
    got = []
    reader = read_fifo(fifo, got)
    compiler.run("--emit=global", "-o", fifo)
    reader.join(LIMIT)
    expect(stat.S_ISFIFO(os.stat(fifo).st_mode), "the FIFO was replaced")
    expect(got == [compiler.text()], "the reader got another text")


@case
def what_is_no_model_is_refused(compiler):
    fifo, binary = compiler.at("in"), compiler.at("weights.safetensors")
    os.mkfifo(fifo)
    binary.write_bytes(b"\x02\0\0\0\0\0\0\0{}\x1b[31m\xff")
    compiler.run("--emit=global", model=fifo, status=1, says="got a FIFO, expected a regular file")
    done = compiler.run("--emit=global", model=binary, status=1, says="is not text, expected a model")
    expect(done.stderr.count(b"\n") == 1 and b"\x1b" not in done.stderr, f"got {done.stderr}")


@case
def a_closed_pipe_loses_only_the_table(compiler):
    reader, writer = os.pipe()
    os.close(reader)
    signals = {"stdout": writer, "preexec_fn": lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL)}
    compiler.run("--report", "-o", compiler.at("out"), says="note: cannot write to standard output", **signals)
    expect(compiler.left() == ["out"], f"left: {compiler.left()}")
    for words in (["--report"], ["--emit=global"], ["--emit=global", "-o", "/dev/stdout"], ["--print-config"]):
        done = compiler.run(*words, status=141, **signals)
        expect(done.stderr == b"", f"{words}: got {done.stderr}")


@case
def standard_output_takes_a_file(compiler):
    text = compiler.text()
    for name in ("-", "/dev/stdout", "/dev/fd/1"):
        expect(compiler.run("--emit=global", "-o", name).stdout == text, f"{name}: another text")
    with open(compiler.at("file"), "wb") as file:
        compiler.run("--emit=global", "-o", "/dev/stdout", stdout=file)
    expect(compiler.at("file").read_bytes() == text, "another text in a file")
    compiler.run("--emit=global", status=1, says="cannot write to standard output", stdout=open("/dev/full", "wb"))


@case
def what_cannot_take_a_result_is_refused(compiler):
    os.mknod(compiler.at("socket"), stat.S_IFSOCK | 0o600)
    compiler.at("folder").mkdir()
    compiler.run("-o", compiler.at("socket"), status=1, says="it is a socket")
    compiler.run("-o", compiler.at("folder"), status=1, says="it is a folder")
    compiler.run("--emit=global", "-o", str(compiler.at("new")) + "/", status=1, says="names a folder")
    compiler.run(f"--report={compiler.at('folder')}", status=1, says="it is a folder")
    expect(compiler.left() == ["folder", "socket"], f"left behind: {compiler.left()}")


@case
def a_link_stays_and_its_target_is_replaced(compiler):
    compiler.at("far").mkdir()
    compiler.at("far/old").write_text("old")
    compiler.at("link").symlink_to("far/old")
    compiler.at("dangling").symlink_to("far/new")
    for link, target in (("link", "far/old"), ("dangling", "far/new")):
        compiler.run("--emit=global", "-o", compiler.at(link))
        expect(compiler.at(link).is_symlink(), f"{link} was replaced")
        expect(compiler.at(target).read_bytes() == compiler.text(), f"{target} was not written")


@case
def mode_and_owner_are_kept(compiler):
    old = compiler.at("old")
    old.write_text("old")
    old.chmod(0o604)
    root = os.geteuid() == 0
    if root:
        os.chown(old, 12345, 12346)
    compiler.run("--emit=global", "-o", old)
    status = old.stat()
    expect(stat.S_IMODE(status.st_mode) == 0o604, f"got mode {status.st_mode:o}")
    expect(not root or (status.st_uid, status.st_gid) == (12345, 12346), "the owner changed")
    for name, words, mode in (("text", ["--emit=global"], 0o640), ("program", [], 0o750)):
        compiler.run(*words, "-o", compiler.at(name), preexec_fn=lambda: os.umask(0o027))
        got = stat.S_IMODE(compiler.at(name).stat().st_mode)
        expect(got == mode, f"a new {name} has mode {got:o}, expected {mode:o}")


@case
def one_file_is_not_two(compiler):
    model = compiler.at("model.mlir")
    shutil.copy(compiler.model, model)
    os.link(model, compiler.at("hard"))
    compiler.at("soft").symlink_to("model.mlir")
    compiler.at("soft-folder").symlink_to(".")
    new = compiler.at("new")
    for words in (["-o", model], ["-o", compiler.at("hard")], ["-o", compiler.at("soft")],
                  [f"--report={model}"], ["-o", new, f"--report={new}"],
                  ["-o", new, f"--report={compiler.at('soft-folder/new')}"]):
        compiler.run("--emit=global", *words, model=model, status=2, says=["got one file for", "expected a separate file"])
    expect(model.read_bytes() == pathlib.Path(compiler.model).read_bytes(), "the model changed")
    expect(not new.exists(), "an output was written")
    # Replacing a folder removes its contents.
    compiler.run("--emit=source", "-o", compiler.at("source"), model=model)
    inside = compiler.at("source/model.mlir")
    shutil.copy(model, inside)
    compiler.run("--emit=source", "-o", compiler.at("source"), model=inside, status=2,
                 says="is in the folder that -o replaces")
    expect(inside.exists(), "the model is gone")


ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def heed_signals():
    """This test may have been started with some of them ignored."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


def begin_endless(compiler, out):
    """Starts the compiler with one that never ends in the place of the real one; returns when that runs."""
    slow = compiler.at("slow")
    slow.write_text("#!/bin/sh\necho $$ >> %s\nwhile :; do sleep 0.1; done\n" % compiler.at("pids"))
    slow.chmod(0o755)
    job = subprocess.Popen(compiler.command("-o", out), env={**compiler.environment(), "CXX": str(slow)}, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, preexec_fn=heed_signals)
    deadline = time.monotonic() + LIMIT
    while not compiler.at("pids").exists() and job.poll() is None:
        expect(time.monotonic() < deadline, "the compiler was not started")
        time.sleep(0.01)
    time.sleep(0.1)
    return job


def interrupted(compiler, number):
    """Sends a signal to the compiler alone, while it works on what comes from its temporary folder."""
    out = compiler.at("out")
    out.write_text("old")
    job = begin_endless(compiler, out)
    try:
        job.send_signal(number)
        job.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Wrong(f"signal {number}: goes on") from None
    finally:
        job.kill()
        pids = [int(pid) for pid in compiler.at("pids").read_text().split()]
        for _ in range(100):  # a killed process exists until its parent waits for it
            running = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
            if not running:
                break
            time.sleep(0.1)
        for pid in running:
            os.kill(pid, signal.SIGKILL)
    expect(job.returncode == -number, f"signal {number}: got status {job.returncode}")
    expect(not running, f"signal {number}: compilers go on: {running}")
    expect(out.read_text() == "old", "what was there is not whole")
    expect(os.listdir(compiler.temporary) == [], f"signal {number}: left behind: {os.listdir(compiler.temporary)}")
    expect(compiler.left() == ["out", "pids", "slow"], f"signal {number}: left behind: {compiler.left()}")
    compiler.at("pids").unlink()


@case
def signals_leave_nothing_behind(compiler):
    for number in ENDING:
        interrupted(compiler, number)


def end_all(compiler, mark):
    """Kills the compilers that never end, those too that have not said yet that they run: none holds `mark` any more."""
    deadline = time.monotonic() + LIMIT
    with open(mark, "r+") as held:
        while time.monotonic() < deadline:
            for pid in compiler.at("pids").read_text().split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                return fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
    raise Wrong("compilers go on")


@case
def the_next_run_removes_what_a_killed_one_left(compiler):
    """A folder stays while a compiler that the killed process has started works in it."""
    job = begin_endless(compiler, compiler.at("out"))
    left = os.listdir(compiler.temporary)
    try:
        job.kill()
        job.wait()  # not for the end of its output, which its children have too
        job.stderr.close()
        expect(len(left) == 1, f"got {left}, expected the folder of the killed compiler")
        compiler.run("-o", compiler.at("out"), status=1, env={"CXX": "/nowhere"})
        expect(os.listdir(compiler.temporary) == left, f"{os.listdir(compiler.temporary)}: removed while a compiler works in it")
    finally:
        end_all(compiler, compiler.temporary / left[0] / ".fsdpc-temporary")
    compiler.run("-o", compiler.at("out"), status=1, env={"CXX": "/nowhere"})
    expect(os.listdir(compiler.temporary) == [], f"left behind: {os.listdir(compiler.temporary)}")


@case
def folders_of_others_stay(compiler):
    """Beside an output: folders that somebody holds, that are not marked, or have another kind of name."""
    mark = ".fsdpc-temporary"
    for name in (".out.killed", ".out.backup", ".out.killed2", ".out.lives1", ".other.killed"):
        compiler.at(name).mkdir()
        (compiler.at(name) / "content").mkdir()
        if name != ".out.backup":
            (compiler.at(name) / mark).touch(mode=0o600)
    with open(compiler.at(".out.lives1") / mark, "r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for again in range(2):
            compiler.run("--emit=source", "-o", compiler.at("out"))
            expect(compiler.left() == [".other.killed", ".out.backup", ".out.killed2", ".out.lives1", "out"], f"{compiler.left()}")
            expect(not (compiler.at("out") / mark).exists(), "the output is marked as temporary")
    expect((compiler.at(".out.lives1") / "content").exists(), "what stayed is not whole")


@case
def closed_descriptors_harm_nothing(compiler):
    text = compiler.text()
    for closed in ((1,), (2,), (1, 2), (0, 1, 2)):
        def close():
            for descriptor in closed:
                os.close(descriptor)

        compiler.run("--emit=global", "-o", compiler.at("out"), f"--report={compiler.at('report')}", preexec_fn=close)
        expect(compiler.at("out").read_bytes() == text, f"{closed}: another text")
        json.loads(compiler.at("report").read_text())


def main(tool, model, scratch):
    scratch = pathlib.Path(scratch)
    scratch.mkdir()
    file_cases.run_cases(scratch, lambda folder: Compiler(folder, tool, model))


if __name__ == "__main__":
    main(*sys.argv[1:])
