#!/usr/bin/env python3
"""check_files.py SCRATCH: what a training program does with the files of its command line.

Every rule of docs/files.md that a process can show, each in a folder of its own. All cases run; the
failing ones are listed at the end.
"""

import json
import os
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

import training

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import file_cases
from file_cases import case, expect, read_fifo, Wrong

LIMIT = training.HANGS
GOLDEN = training.GOLDEN / "mlp"


class Runs(file_cases.Folder):
    """Runs of the two programs."""

    def __init__(self, folder, program, wide):
        super().__init__(folder, LIMIT)
        self.program, self.wide = program, wide

    def command(self, *words, steps=3, init=GOLDEN / "init.safetensors", data=GOLDEN / "data.safetensors"):
        command = [self.program, "--data", data, "--steps", steps, *(["--init", init] if init else []), *words]
        return [str(word) for word in command]

    def run(self, *words, command=None, **options):
        named = {key: options.pop(key) for key in ("steps", "init", "data") if key in options}
        return self.run_command(command or self.command(*words, **named), **options)

    def exported(self):
        """The bytes that an export of three steps has."""
        self.run("--export", self.at("reference"))
        content = self.at("reference").read_bytes()
        self.at("reference").unlink()
        return content


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@case
def a_device_is_written_to_and_stays(runs):
    """As root a rename would put a file in the place of the machine's null device."""
    null = runs.at("null")
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        print("not shown: devices cannot be made here")
        return
    runs.run("--export", null, "--trace", null, "--log", null)
    expect(stat.S_ISCHR(os.stat(null).st_mode), "the device was replaced")
    expect(runs.left() == ["null"], f"left behind: {runs.left()}")


@case
def a_fifo_is_written_to_its_reader(runs):
    fifo = runs.at("fifo")
    os.mkfifo(fifo)
    runs.run("--export", fifo, status=1, says="no process reads this FIFO")
    got = []
    reader = read_fifo(fifo, got)
    runs.run("--export", fifo)
    reader.join(LIMIT)
    expect(stat.S_ISFIFO(os.stat(fifo).st_mode), "the FIFO was replaced")
    expect(got == [runs.exported()], "the reader got other bytes than a file has")


@case
def standard_output_takes_a_file_without_progress(runs):
    exported = runs.exported()
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        expect(runs.run("--export", name).stdout == exported, f"{name}: other bytes than a file has")
    with open(runs.at("file"), "wb") as file:
        runs.run("--export", "/dev/stdout", stdout=file)
    expect(runs.at("file").read_bytes() == exported, "other bytes in a file")
    done = runs.run("--log", "/dev/stdout")
    expect([line["step"] for line in lines(done.stdout)] == [1, 2, 3], "the log is not all there")
    expect(b"step 3/3" in done.stderr, "progress is not on standard error")
    runs.run("--export", "/dev/fd/0", stdin=open(GOLDEN / "init.safetensors", "rb"), status=1,
             says="it is open for reading only")


@case
def what_cannot_take_bytes_is_refused(runs):
    runs.at("folder").mkdir()
    os.mknod(runs.at("socket"), stat.S_IFSOCK | 0o600)
    for option in ("--export", "--trace", "--log"):
        runs.run(option, runs.at("folder"), status=1, says="it is a folder")
        runs.run(option, runs.at("socket"), status=1, says="it is a socket")
        if option != "--export":
            runs.run(option, str(runs.at("new")) + "/", status=1, says="names a folder")
    expect(runs.left() == ["folder", "socket"], f"left behind: {runs.left()}")


@case
def a_slash_exports_a_folder(runs):
    exported = runs.exported()
    for _ in range(2):  # new, and replaced
        runs.run("--export", f"{runs.at('new')}//")
        expect(runs.at("new/model.safetensors").read_bytes() == exported, "other bytes in the folder than in a file")
    runs.run("--export", f"{runs.at('no/new')}/", status=1, says=f"--export: cannot create the folder '{runs.at('no/new')}': there is no folder '{runs.at('no')}'; create it first")
    for name in ("model.safetensors.index.json", "manifest.json"):
        runs.at(f"new/{name}").write_text("{}")
        runs.run("--export", f"{runs.at('new')}/", status=1, says=f"cannot export to the folder '{runs.at('new')}': it has '{name}'")
        runs.at(f"new/{name}").unlink()
    runs.at("file").write_text("")
    runs.run("--export", f"{runs.at('file')}/", status=2, says=f"'{runs.at('file')}' is a file, expected a folder")
    expect(runs.at("file").read_bytes() == b"", "the file was written to")
    expect(runs.at("new/model.safetensors").read_bytes() == exported, "the folder is not as it was")
    # A run that is refused, or fails, removes the folder that it has created, and no other.
    runs.at("mine").mkdir()
    for name, left in (("refused", False), ("mine", True)):
        for wrong in ({"data": runs.at("missing")}, {"init": runs.at("missing")}):
            runs.run("--export", f"{runs.at(name)}/", status=1, **wrong)
            expect(runs.at(name).exists() == left, f"{name}, {wrong}: the folder is " + ("gone" if left else "left"))


@case
def a_link_stays_and_its_target_is_replaced(runs):
    exported = runs.exported()
    runs.at("far").mkdir()
    runs.at("far/old").write_text("old")
    runs.at("link").symlink_to("far/middle")
    runs.at("far/middle").symlink_to("old")
    runs.at("dangling").symlink_to("far/new")
    for link, target in (("link", "far/old"), ("dangling", "far/new")):
        runs.run("--export", runs.at(link))
        expect(runs.at(link).is_symlink(), f"{link} was replaced")
        expect(runs.at(target).read_bytes() == exported, f"{target} was not written")
    runs.at("loop").symlink_to("loop")
    runs.run("--export", runs.at("loop"), status=1, says="Too many levels of symbolic links")


@case
def mode_and_owner_are_kept(runs):
    old = runs.at("old")
    old.write_text("old")
    old.chmod(0o604)
    root = os.geteuid() == 0
    if root:
        os.chown(old, 12345, 12346)
    runs.run("--export", old)
    status = old.stat()
    expect(stat.S_IMODE(status.st_mode) == 0o604, f"got mode {status.st_mode:o}")
    expect(not root or (status.st_uid, status.st_gid) == (12345, 12346), "the owner changed")
    runs.run("--export", runs.at("new"), preexec_fn=lambda: os.umask(0o027))
    expect(stat.S_IMODE(runs.at("new").stat().st_mode) == 0o640, "a new file does not follow the umask")


@case
def one_file_is_not_two(runs):
    data = runs.at("data")
    shutil.copy(GOLDEN / "data.safetensors", data)
    init = runs.at("init")
    shutil.copy(GOLDEN / "init.safetensors", init)
    os.link(init, runs.at("hard"))
    runs.at("soft").symlink_to("data")
    runs.at("soft-folder").symlink_to(".")
    runs.at("dangling").symlink_to("new")
    runs.at("folder").mkdir()
    shutil.copy(init, runs.at("folder/model.safetensors"))
    before = data.read_bytes(), init.read_bytes()
    new = runs.at("new")
    for words in (("--export", init), ("--export", runs.at("hard")), ("--log", data), ("--log", runs.at("soft")),
                  ("--trace", runs.at("soft-folder/data")), ("--trace", new, "--export", new),
                  ("--trace", new, "--export", runs.at("soft-folder/new")),
                  ("--log", runs.at("dangling"), "--export", new), ("--val-data", init, "--export", init)):
        runs.run(*words, data=data, init=init, status=2, says=["got one file for", "expected a separate file"])
    runs.run("--export", runs.at("folder/model.safetensors"), data=data, init=runs.at("folder"), status=2,
             says="got one file for")
    expect(before == (data.read_bytes(), init.read_bytes()), "an input changed")
    expect(not new.exists(), "an output was written")
    with open(runs.at("file"), "wb") as file:
        runs.run("--log", runs.at("file"), stdout=file, status=2, says="standard output")


@case
def a_flight_record_is_no_other_file(runs):
    """Refused at the start, before there is a failure that would overwrite the file."""
    data, new, record = runs.at("data"), runs.at("new"), runs.at("record")
    shutil.copy(GOLDEN / "data.safetensors", data)
    runs.at("soft").symlink_to("data")
    runs.at("record.restart-1").symlink_to("data")
    runs.at("root.flight-record.txt").symlink_to("data")
    runs.run("--save", runs.at("saved"))
    before = {path: path.read_bytes() for path in runs.folder.rglob("*") if path.is_file()}
    for words in (("--flight-record", data), ("--flight-record", runs.at("soft")), ("--flight-record", new, "--log", new),
                  ("--flight-record", new, "--export", new), ("--flight-record", new, "--trace", new),
                  ("--flight-record", new, "--init", new), ("--flight-record", new, "--log", runs.at("new.rank-1")),
                  ("--flight-record", record, "--save", runs.at("root-2"), "--max-restarts", 1),
                  ("--flight-record", new, "--save", runs.at("root-2"), "--max-restarts", 2, "--log", runs.at("new.restart-2")),
                  ("--flight-record", new, "--save", runs.at("root-2"), "--max-restarts", 2, "--log", runs.at("new.restart-2.rank-3")),
                  ("--save", runs.at("root"))):
        if "--init" in words:
            shutil.copy(GOLDEN / "init.safetensors", new)
        runs.run(*words, data=data, init=None, status=2, says=["got one file for", "--flight-record '", "expected a separate file"])
        new.unlink(missing_ok=True)
    for words in (("--save", runs.at("saved")), ("--resume", runs.at("saved"))):
        for name in ("record", "step-00000003/manifest.json"):
            runs.run("--flight-record", runs.at("saved") / name, *words, data=data, status=2, init=None,
                     says=["got --flight-record '", "' within the folder of --", "which is for checkpoints alone: name a file outside of it"])
    runs.run("--flight-record", runs.at("no/record"), status=1, says="cannot create '")
    runs.run("--flight-record", runs.folder, status=1, says="it is a folder, expected a file or nothing")
    expect(before == {path: path.read_bytes() for path in runs.folder.rglob("*") if path.is_file()}, f"changed: {runs.left()}")
    # More restarts than the run may have have no record.
    runs.run("--flight-record", new, "--save", runs.at("root-2"), "--max-restarts", 1, "--log", runs.at("new.restart-2"))


def wait_until(condition, what):
    deadline = time.monotonic() + LIMIT
    while not condition():
        expect(time.monotonic() < deadline, f"did not happen: {what}")
        time.sleep(0.0005)


ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def heed_signals():
    """This test may have been started with some of them ignored."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


def killed(runs, number, kept):
    """Sends a signal to the job while it writes its weights."""
    for _ in range(50):
        if hits(runs, number):
            break
        for name in runs.left():
            runs.at(name).unlink()
    else:
        raise Wrong("fifty runs ended before a signal reached them")
    if not kept:
        expect(runs.left() == ["out"], f"signal {number}: left behind: {runs.left()}")


def hits(runs, number):
    """Whether the job still ran when it was sent the signal."""
    out = runs.at("out")
    out.write_text("old")
    job = subprocess.Popen([str(runs.wide), "--data", str(GOLDEN / "data.safetensors"), "--steps", "1", "--export",
                            str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=heed_signals)
    ranks = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")
    try:
        wait_until(lambda: len(runs.left()) > 1 or job.poll() is not None, "a temporary file")
        children = [int(child) for child in ranks.read_text().split()] if ranks.exists() else []
        job.send_signal(number)
        job.communicate(timeout=LIMIT)
    finally:
        job.kill()
    if job.returncode == 0 and out.read_bytes() != b"old":
        return False
    expect(job.returncode == -number, f"signal {number}: got status {job.returncode}")
    wait_until(lambda: not any(os.path.exists(f"/proc/{child}") for child in children), "the end of all ranks")
    expect(out.read_bytes() == b"old", f"signal {number}: what was there is not whole")
    return True


@case
def signals_leave_nothing_behind(runs):
    for number in ENDING:
        killed(runs, number, kept=False)


@case
def a_killed_job_leaves_the_old_file_whole(runs):
    killed(runs, signal.SIGKILL, kept=True)


@case
def inputs_that_are_no_files_do_not_hang(runs):
    fifo = runs.at("fifo")
    os.mkfifo(fifo)
    says = [str(fifo), "got a FIFO, expected a regular file"]
    runs.run(data=fifo, status=1, says=says)
    runs.run(init=fifo, status=1, says=says)
    runs.run("--val-data", fifo, status=1, says=says)
    runs.run(data="/dev/zero", status=1, says="got a character device, expected a regular file")


@case
def an_existing_log_is_kept(runs):
    log = runs.at("log")
    for kept in range(3):
        done = runs.run("--log", log, steps=kept + 1)
        expect((f"log.{kept}'" in done.stdout.decode()) == (kept > 0), f"not named: {done.stdout}")
    expect(runs.left() == ["log", "log.1", "log.2"], f"got {runs.left()}")
    for name, count in (("log.1", 1), ("log.2", 2), ("log", 3)):
        expect(len(lines(runs.at(name).read_text())) == count, f"{name} is of another run")
    log.chmod(0o600)
    runs.run("--log", log)
    expect(stat.S_IMODE(log.stat().st_mode) == 0o600, "the new log has another mode")
    runs.run("--log", log, status=1, data=runs.at("nowhere"))
    expect(len(runs.left()) == 4, "a run that was refused moved the log")


@case
def one_log_has_one_run(runs):
    log = runs.at("log")
    first = subprocess.Popen(runs.command("--log", str(log), steps=1000000000), stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: log.exists() and log.stat().st_size > 0, "the first line")
        record = runs.at("log.flight-record.txt")
        record.write_text("of the first run")
        for words in ((), ("--save", runs.at("root")), ("--save", runs.at("root"), "--max-restarts=1")):
            runs.run("--log", log, *words, status=1, says="another run writes its log there")
        launched = [subprocess.Popen(runs.command("--log", log, "--communicator=tcp"), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                     env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
                                          "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 20000)}) for rank in range(2)]
        said = "".join(rank.communicate(timeout=LIMIT)[1] for rank in launched)
        expect([rank.returncode for rank in launched] == [1, 1] and said.count("another run writes its log there") == 1, said)
        expect(sorted(runs.left()) == ["log", "log.flight-record.txt"], f"got {runs.left()}")
        expect(record.read_text() == "of the first run", "a run that was refused replaced the first run's record")
    finally:
        first.terminate()
        first.wait()
    record.unlink()
    expect(runs.left() == ["log"], f"got {runs.left()}")
    runs.run("--log", log)
    expect(runs.left() == ["log", "log.1"], f"got {runs.left()}")


@case
def a_flight_record_is_whole_or_not_there(runs):
    """Ten steps whose loss is not finite end a run. The record of its two ranks needs more than a page."""
    def fails(record, says, **options):
        runs.run("--lr", "1e30", "--flight-record", record, steps=200, status=1, says=["in a row that are not finite", says], **options)

    whole = runs.at("record")
    fails(whole, "note: wrote the last actions of each rank to '")
    expect(whole.stat().st_size > 4096, f"got {whole.stat().st_size} bytes")
    whole.write_text("of the last failure")

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    fails(whole, "warning: the last actions of each rank are lost: cannot write '", preexec_fn=small)
    expect(whole.read_text() == "of the last failure" and runs.left() == ["record"], f"got {runs.left()}")
    disk = runs.at("disk")
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", disk], capture_output=True).returncode:
        print("not shown: file systems cannot be mounted here")
        return
    try:
        (disk / "other").write_bytes(bytes(4096))
        fails(disk / "record", "No space left on device")
        expect(os.listdir(disk) == ["other"], f"left on the full disk: {os.listdir(disk)}")
        (disk / "other").write_bytes(bytes(8192))  # what others write has its room
    finally:
        subprocess.run(["umount", disk], check=True)


@case
def no_output_overwrites_a_log(runs):
    log, aside = runs.at("log"), runs.at("log.1")
    for option in ("--export", "--trace"):
        log.write_text("old\n")
        runs.run("--log", log, option, aside, says="kept the existing log as '" + str(runs.at("log.2")))
        expect(runs.at("log.2").read_text() == "old\n", f"{option}: the old log is gone")
        for name in runs.left():
            runs.at(name).unlink()
    first = subprocess.Popen(runs.command("--log", str(log), steps=1000000000), stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: log.exists() and log.stat().st_size > 0, "the first line")
        for option in ("--export", "--trace"):
            runs.run(option, log, status=1, says="another run writes its log there")
    finally:
        first.terminate()
        first.wait()


@case
def a_full_disk_under_the_log_does_not_end_training(runs):
    exported = runs.exported()
    says = ["cannot write '", "training continues without it", "the log lacks the steps from"]

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    runs.run("--log", runs.at("log"), steps=100, status=1, says=says, preexec_fn=small)
    kept = lines(runs.at("log").read_text())
    expect(10 < len(kept) < 100 and kept[-1]["step"] == len(kept), "the lines that had room are not there")
    runs.run("--log", "/dev/full", "--export", runs.at("out"), status=1, says=says)
    expect(runs.at("out").read_bytes() == exported, "the weights are others")
    folder = runs.at("disk")
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", folder], capture_output=True).returncode:
        print("not shown: file systems cannot be mounted here")
        return
    try:
        runs.run("--log", folder / "log", "--export", runs.at("out"), steps=100, status=1,
                 says=says + ["No space left on device"])
    finally:
        subprocess.run(["umount", folder], check=True)


@case
def a_closed_pipe_does_not_end_training(runs):
    exported = runs.exported()
    out = runs.at("out")
    reader, writer = os.pipe()
    os.close(reader)
    runs.run("--export", out, stdout=writer, says="progress is no longer shown")
    expect(out.read_bytes() == exported, "the weights are others")
    os.unlink(out)
    with open("/dev/full", "wb") as full:
        runs.run("--export", out, stdout=full, says="progress is no longer shown")
    expect(out.read_bytes() == exported, "the weights are others")
    done = runs.run(status=141, stdout=writer, command=[str(runs.program), "--report"])
    expect(done.stderr == b"", f"got {done.stderr}")


@case
def progress_never_lands_in_a_file(runs):
    exported = runs.exported()
    for closed in ((1,), (2,), (1, 2), (0, 1, 2)):
        def close():
            for descriptor in closed:
                os.close(descriptor)

        runs.run("--log", runs.at("log"), "--export", runs.at("out"), "--trace", runs.at("trace"), preexec_fn=close)
        expect([line["step"] for line in lines(runs.at("log").read_text())] == [1, 2, 3], f"{closed}: the log")
        expect(runs.at("out").read_bytes() == exported, f"{closed}: the weights")
        json.loads(runs.at("trace").read_text())


@case
def weights_that_are_no_numbers_are_not_exported(runs):
    runs.at("out").write_text("old")
    runs.run("--lr", "3e38", "--export", runs.at("out"), "--log", runs.at("log"), "--flight-record=none", steps=1, status=1,
             says=["cannot export to '", "parameter 'fc1.weight' has ", "value(s) that are not finite"])
    expect(runs.at("out").read_text() == "old", "the old file was replaced")
    expect(runs.left() == ["log", "out"], f"left behind: {runs.left()}")


@case
def a_last_step_that_is_not_finite_is_told(runs):
    done = runs.run("--lr", "1e25", "--export", runs.at("out"), steps=2,
                    says=["warning: got loss ", "in the last step, a step that is not finite: its update was skipped"])
    expect(b"-nan" not in done.stdout + done.stderr, f"NaN with a sign: {done.stdout}")
    expect(runs.left() == ["out"], f"left: {runs.left()}")
    done = runs.run("--export", runs.at("out"), steps=2)
    expect(b"warning" not in done.stderr, f"got {done.stderr}")


@case
def text_of_files_does_not_reach_the_terminal(runs):
    def hostile(name):
        names = {"fc1.weight": [17, 12], name: [10]}
        header, at = {}, 0
        for each, shape in names.items():
            size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[each] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        path = runs.at("hostile")
        path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(at))
        return path

    for name in ("\x1b[31mred", "cut\0off", "two\nlines"):
        shown = name.replace("\x1b", "\\x1B").replace("\0", "\\x00").replace("\n", "\\n")
        runs.run(init=hostile(name), status=1, says=[f"'{shown}'", "expected"])
        runs.run(data=hostile(name), status=1, says=[f"'{shown}'"])
    command = "\x1b[31mred\n\u009b"
    for words in ((f"--{command}",), (command,), (f"--plan={command}",), (f"--lr={command}",), (f"--communicator={command}",)):
        runs.run(*words, status=2, says="\\x1B[31mred\\n\\xC2\\x9B'")
    done = runs.run("--export", runs.at(command), "--trace", runs.at(f"trace{command}"), "--log", runs.at(f"log{command}"), says="wrote '")
    again = runs.run("--log", runs.at(f"log{command}"), "--save", runs.at(f"root{command}"), says=("kept the existing log as '", "saved '"))
    later = runs.run("--save", runs.at(f"root{command}"), steps=2, says="kept the checkpoint of another run as '")
    resumed = runs.run("--resume", runs.at(f"root{command}"), init=None, steps=4, says="resumed from '")
    for each in (done, again, later, resumed):
        expect(b"\x1b" not in each.stdout + each.stderr and b"\n\xc2" not in each.stdout + each.stderr, f"{each}")


@case
def messages_are_short(runs):
    """However long what they quote is."""
    def many(names):
        path = runs.at(f"file-of-{len(names)}")
        text = json.dumps({name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text)
        return path

    long = "y" * 70000
    for options, status, says in (({"data": many([f"p{i}{'y' * 200}" for i in range(3000)])}, 1, "', …, expected one tensor for each input of the model"),
                                  ({"data": many([long])}, 1, "bytes left out) ... "), ({"init": many([long])}, 1, "bytes left out) ... "),
                                  ({"data": long}, 1, "bytes left out) ... "), ({"steps": long}, 2, "bytes left out) ... ")):
        done = runs.run(status=status, says=says, **options)
        expect(len(done.stderr + done.stdout) < 4200, f"got {len(done.stderr)} bytes")
    for words in ((f"--{long}",), (long,), (f"--plan={long}",), (f"--communicator={long}",), (f"--{long}=",)):
        done = runs.run(*words, status=2, says="bytes left out) ... ")
        expect(len(done.stderr) < 4200, f"got {len(done.stderr)} bytes")


def main(scratch):
    os.environ.update(training.unoptimized())
    scratch = pathlib.Path(scratch)
    # That decay makes infinities of weights at a learning rate that is large enough.
    program = training.compile_model("mlp", scratch, "--in=12", "--hidden=17", "--classes=10", "--batch=10",
                                     "--weight-decay=1000", ranks=2)
    wide = training.compile_model("mlp", scratch / "wide", "--in=12", "--hidden=4000", "--classes=10", "--batch=10",
                                  ranks=2)
    file_cases.run_cases(scratch, lambda folder: Runs(folder, program, wide))


if __name__ == "__main__":
    main(*sys.argv[1:])
