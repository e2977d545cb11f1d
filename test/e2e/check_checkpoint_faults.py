#!/usr/bin/env python3
"""check_checkpoint_faults.py SCRATCH LIBRARY: disks that are full, folders that vanish, places that cannot be written.

The run says which file, and the system's reason; what was half written is removed; earlier checkpoints stay and are gone on from. With
--save-errors=warn the run ends as if nothing had been. Each call that fails, by itself: test/unit/runtime/train/CheckpointFolderTest.cpp.
"""

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import threading
import time

import faulty
from checkpoints import Runs, expect, folders, logged, mlp, run_cases, same
from training import GOLDEN, unoptimized

DATA = GOLDEN / "mlp" / "data.safetensors"
WAYS = ([], ["--save-async"])


def small_files():
    """Files of this process end at 1500 bytes: fewer than those of a checkpoint have."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))


def a_save_that_fails_ends_the_run(runs, programs):
    root = runs.at("ends")
    for program in programs:
        for way in WAYS:
            shutil.rmtree(root, ignore_errors=True)
            runs.run(program, "--save", root, steps=3)
            said = runs.run(program, "--save", root, "--save-every", 5, "--resume=latest", *way, preexec_fn=small_files, status=1,
                            says=("cannot write '", "step-00000005/", "': File too large; earlier checkpoints in '",
                                  "with --save-errors=warn training would continue"))
            expect(said.count("error:") == 1, said)
            expect(folders(root) == ["step-00000003"], f"{folders(root)}")
            runs.run(program, "--save", root, "--resume=latest", says="step-00000003', step 3")


def with_warn_training_goes_on(runs, programs):
    root = runs.at("goes-on")
    for i, program in enumerate(programs):
        runs.run(program, "--export", runs.at(f"{i}.safetensors"))
        for way in WAYS:
            shutil.rmtree(root, ignore_errors=True)
            runs.run(program, "--save", root, steps=3)
            said = runs.run(program, "--save", root, "--save-every", 1, "--resume=latest", "--save-errors=warn", *way,
                            preexec_fn=small_files, says=("warning: rank 0: step 4 is not saved: cannot write '",
                                                          "warning: rank 0: step 8 is not saved: cannot write '"))
            expect(said.count("is not saved") == 5, said)
            expect(folders(root) == ["step-00000003"], f"{folders(root)}")
            out = runs.at("again.safetensors")
            runs.run(program, "--save", root, "--resume=latest", "--export", out)
            same(out, runs.at(f"{i}.safetensors"), "the run that goes on")


def a_full_disk_is_named(runs, programs):
    disk = runs.at("disk")
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        print("not shown: no file system can be mounted here")
        return
    try:
        runs.run(programs[0], "--save", disk / "root", steps=3, says="saved '")
        said = runs.run(programs[0], "--save", disk / "root", "--save-every", 1, "--resume=latest", status=1,
                        says=("No space left on device; free some space; earlier checkpoints in '",))
        saved = [name for name in folders(disk / "root") if (disk / "root" / name / "manifest.json").exists()]
        expect(saved and saved == folders(disk / "root"), f"{folders(disk / 'root')}: {said}")
        runs.run(programs[0], "--resume", disk / "root", says=f"{saved[-1]}', step")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def a_folder_that_vanishes_is_named(runs, programs):
    root, log = runs.at("vanishes"), runs.at("vanishes.jsonl")

    def remove():
        while not list(root.glob("*/manifest.json")):
            time.sleep(0.01)
        while root.exists():
            shutil.rmtree(root, ignore_errors=True)

    thread = threading.Thread(target=remove, daemon=True)
    thread.start()
    said = runs.run(programs[1], "--save", root, "--save-every", 50, "--log", log, steps=10**7, status=1, says="': No such file or directory")
    thread.join()
    expect("cannot " in said and str(root) in said, said)
    expect(logged(log)[-1]["step"] % 50 == 0, "it trained on")


def one_folder_has_one_run(runs, programs):
    """A second run neither renames nor removes checkpoints of the one that saves there, whether or not it goes on from them."""
    program, root = programs[0], runs.at("shared")
    log = runs.at("shared.jsonl")
    first = subprocess.Popen(runs.command(program, "--save", root, "--save-every", 50, "--log", log, steps=10**8), stdout=subprocess.DEVNULL)
    try:
        while len(folders(root) if root.exists() else []) < 2:
            expect(first.poll() is None, "the first run has ended")
            time.sleep(0.01)
        for words in ([], ["--resume=latest"], ["--keep=1", "--max-restarts=1"]):
            said = runs.run(program, "--save", root, *words, steps=3, status=1)
            expect(said.count("error: ") == 1 and f"cannot save to '{root}': another run saves its checkpoints there; wait for its end or choose "
                   "another folder" in said and "restart" not in said and "rank" not in said, said)
        expect(first.poll() is None, "the first run has ended")
        expect("step-00000050" in folders(root) and not any("." in path.name for path in root.iterdir()), f"{folders(root)}")
    finally:
        first.terminate()
        first.wait()
    expect(first.returncode == 143, f"got status {first.returncode}")
    runs.run(program, "--save", root, steps=3)  # its lock went with it


def places_that_cannot_be_written_are_refused_at_the_start(runs, programs):
    for program in programs:
        runs.run(program, "--save", runs.at("no/such/folder"), status=1, says="no/such': No such file or directory")
        runs.at("file").write_text("a file")
        runs.run(program, "--save", runs.at("file"), status=1, says=("cannot save to '", "file': got a file, expected a folder or nothing"))
        runs.run(program, "--save", "/proc/checkpoints", status=1, says="cannot ")
        runs.at("leads-nowhere").unlink(missing_ok=True)
        runs.at("leads-nowhere").symlink_to("not/there")
        runs.run(program, "--save", runs.at("leads-nowhere"), status=1, says="leads-nowhere': got a symbolic link that leads to nothing, expected")
        runs.run(program, "--save", f"{runs.at('trailing')}/", steps=3, says="trailing/step-00000003'")
        runs.run(program, "--save", runs.at("trailing") / "step-00000003", status=1,
                 says=("step-00000003': got a checkpoint, expected the folder around it, '", "trailing', or another one"))
    if os.geteuid() == 0:
        print("not shown: root may write everywhere")
        return
    runs.at("closed").mkdir(mode=0o500)
    runs.run(programs[0], "--save", runs.at("closed"), status=1, says="closed': Permission denied")


def snapshot(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def what_cannot_be_read_now_is_no_damage(runs, programs, library):
    """No run starts over or uses an earlier checkpoint because a disk does not give a checkpoint that may be complete; nothing is renamed."""
    root = runs.at("unread")
    for i, program in enumerate(programs):
        shutil.rmtree(root, ignore_errors=True)
        runs.run(program, "--save", root, "--save-every", 3, steps=6)
        before = snapshot(root)
        for fault, file, reason in (("open 1+ EACCES", "", "Permission denied"), ("open 1+ EIO", "model.safetensors", "Input/output error"),
                                    ("open 1+ ESTALE", "00000006/manifest.json", "Stale file handle"), ("open 1+ EDQUOT", "", "Disk quota exceeded"),
                                    ("mmap 1+ ENOMEM", "00000006/exp_avg.safetensors", "Cannot allocate memory")):
            env = faulty.environment(library, f"* {fault} {file or 'step-0000'}")
            said = runs.run(program, "--save", root, "--resume=latest", status=1, env=env,
                            says=(f"step-00000006/{file.split('/')[-1] or 'manifest.json'}': {reason}; it may be complete, so no earlier one is taken: try again when "
                                  "it can be read, name another checkpoint with --resume DIR, or pass over it with --start-over",))
            expect(said.count("error: ") == 1 and "begins anew" not in said, said)
            expect(snapshot(root) == before, f"{fault}: {folders(root)}: {said}")
            said = runs.run(program, "--resume", root, status=1, env=env, says=f"': {reason}; it may be complete, so no earlier one is taken: try again when it can be "
                            "read, or name another checkpoint with --resume DIR")
            expect("--start-over" not in said, said)
        if i == 1:  # one rank alone
            said = runs.run(program, "--save", root, "--resume=latest", status=1, env=faulty.environment(library, "1 open 1+ EIO step-00000006/model.safetensors"),
                            says="step-00000006/model.safetensors': Input/output error; it may be complete")
            expect(said.count("error: ") == 1 and snapshot(root) == before, said)
        env = faulty.environment(library, "* open 1+ EIO step-00000006/model.safetensors")
        said = runs.run(program, "--save", root, "--resume=latest", "--start-over", env=env,
                        says=("Input/output error: continuing from an earlier checkpoint", f"resumed from '{root}/step-00000003'"))
        expect(snapshot(root / "step-00000006.1") == snapshot_of(before, "step-00000006"), "it is kept")


def a_restart_does_not_start_over(runs, programs, library):
    """--start-over passes over what was there before the run, not over what the run has saved: a disk may give that again."""
    program, root, log, out = programs[1], runs.at("once"), runs.at("once.jsonl"), runs.at("once.safetensors")
    runs.run(program, "--export", runs.at("once-whole.safetensors"), steps=20)
    # Ranks r of attempt a are processes 3 a + r.
    env = faulty.environment(library, "0 open 1 kill once/step-00000015", *(f"{rank} open 1+ EIO once/step-00000010/manifest" for rank in (3, 4)))
    for restarts, status in ((1, 1), (2, 0)):
        shutil.rmtree(root, ignore_errors=True)
        log.unlink(missing_ok=True)
        said = runs.run(program, "--save", root, "--save-every", 5, "--resume=latest", "--start-over", "--log", log, "--export", out, "--flight-record=none",
                        "--max-restarts", restarts, steps=20, status=status, env=env, says="step-00000010/manifest.json': Input/output error; it may be complete")
        expect(said.count("begins anew") == 1 and "resumed from '" + str(root / "step-00000005") not in said, said)
        expect([step["step"] for step in logged(log)][:10] == list(range(1, 11)) and "step-00000010" in folders(root), said)
        expect(status or f"resumed from '{root}/step-00000010'" in said and len(logged(log)) == 20, said)
    same(out, runs.at("once-whole.safetensors"), "the run that waited")


def a_folder_that_cannot_be_read_is_passed_over(runs, programs, library):
    """A step's folder as without permission: it may hold a checkpoint that is whole."""
    root = runs.at("closed-step")
    for program in programs:
        shutil.rmtree(root, ignore_errors=True)
        runs.run(program, "--save", root, "--save-every", 3, steps=6)
        before = snapshot(root)
        env = faulty.environment(library, "* opendir 1+ EACCES step-00000006", "* open 1+ EACCES step-00000006/")
        for words in (("--save", root, "--resume=latest"), ("--resume", root)):
            runs.run(program, *words, status=1, env=env, says="step-00000006/manifest.json': Permission denied; it may be complete, so no earlier one is taken: ")
            expect(snapshot(root) == before, f"{folders(root)}")
        runs.run(program, "--save", root, "--resume=latest", "--start-over", env=env,
                 says=("Permission denied: continuing from an earlier checkpoint", f"resumed from '{root}/step-00000003'"))
        expect(snapshot(root / "step-00000006.1") == snapshot_of(before, "step-00000006"), "it is kept")


def snapshot_of(files, folder):
    return {pathlib.Path(*path.parts[1:]): content for path, content in files.items() if path.parts[0] == folder}


def where_none_can_be_used_it_is_an_error(runs, programs, _):
    root = runs.at("useless")
    for program in programs:
        shutil.rmtree(root, ignore_errors=True)
        runs.run(program, "--save", root, "--save-every", 3, steps=6)
        (root / "step-00000006" / "exp_avg.safetensors").unlink()
        os.truncate(root / "step-00000003" / "model.safetensors", 100)
        before = snapshot(root)
        for words, says in ((("--save", root, "--resume=latest"), f"error: none of the 2 checkpoints in '{root}' can be used (name another with --resume DIR, or begin "
                             "anew with --start-over): "), (("--resume", root), f"error: none of the 2 checkpoints in '{root}' can be used: ")):
            said = runs.run(program, *words, status=1, says=(says, "exp_avg.safetensors': No such file or directory; ",
                                                             "step-00000003/model.safetensors': got 100 bytes, expected"))
            expect(said.count("error: ") == 1 and snapshot(root) == before, said)
        shutil.rmtree(root / "step-00000003")
        runs.run(program, "--save", root, "--resume=latest", status=1,
                 says="No such file or directory; name another checkpoint with --resume DIR, or begin anew with --start-over\n")
        runs.run(program, "--save", root, "--resume", "latest", "--start-over", says=(f"no checkpoint in '{root}' can be used: training begins anew", "step-00000006.1'"))
        runs.run(program, "--save", root, "--start-over", status=2, says="got --start-over without --resume=latest: without it, and with no checkpoint there, a run "
                 "begins anew in any case")


def main():
    os.environ.update(unoptimized())
    folder, library = map(pathlib.Path, sys.argv[1:])
    programs = [mlp(folder / "one", "fsdp=1"), mlp(folder / "two", "fsdp=2")]
    run_cases((a_save_that_fails_ends_the_run, with_warn_training_goes_on, a_full_disk_is_named, a_folder_that_vanishes_is_named,
               one_folder_has_one_run, places_that_cannot_be_written_are_refused_at_the_start), Runs(folder / "runs", DATA), programs)
    run_cases((what_cannot_be_read_now_is_no_damage, a_restart_does_not_start_over, a_folder_that_cannot_be_read_is_passed_over,
               where_none_can_be_used_it_is_an_error), Runs(folder / "runs", DATA), programs, library)


if __name__ == "__main__":
    main()
