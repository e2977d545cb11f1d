"""What the documents show is what the commands print.

check_docs.py FOLDER --digits DIR DOCUMENT...

In each document (below the repository's root):
- a ```console block that shows output is run, command by command, in one shell for the whole document, whose folder has
  `scripts`, `examples`, `test` and the digits; what each command prints is what the block shows. Blocks that show none are not run;
- a ```cpp block after `<!-- of COMMAND: FILE -->` is a part of what COMMAND writes into FILE.

`...` stands for what was left out: lines, or the rest of a line. Numbers with a fraction agree within a tenth (processors round
differently), whole ones exactly, times and library workspace not at all.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:^<!-- of (?P<command>[^\n]*): (?P<file>[^\n]*?) -->\n)?^```(?P<kind>console|cpp)\n(?P<text>.*?)^```$",
                   re.M | re.S)
VARYING = re.compile(r"\S+ (samples|tokens)/s +\d+:\d\d left|workspace \d+ bytes|largest difference \S+ at \S+")
PROGRESS = re.compile(r"step \d+/\d+  loss .* \d+:\d\d left")  # one every few seconds, so their number depends on the machine's load
FRACTION = re.compile(r"[-+]?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)")
ENDED = "-- the command has ended --"


def commands_of(block):
    """[(command, lines that it prints)]"""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        elif found:
            found[-1][1].append(line)
    return found


def agree(shown, got):
    """Whether one line is the other but for what varies."""
    shown, got = (VARYING.sub("<varies>", " ".join(line.split())) for line in (shown, got))
    if "..." in shown:
        shown = shown[:shown.index("...")].rstrip()
        got = got[:len(shown)]
    if FRACTION.sub("#", shown) != FRACTION.sub("#", got):
        return False
    pairs = zip(map(float, FRACTION.findall(shown)), map(float, FRACTION.findall(got)))
    return all(abs(a - b) <= 0.1 * max(abs(a), abs(b)) for a, b in pairs)


def difference(shown, got, whole):
    """None if the lines `shown` are those `got`, which they cover from end to end if `whole`; else what is missing."""
    pieces = [[]]
    for line in shown:
        if line.strip() == "...":
            pieces.append([])
        else:
            pieces[-1].append(line)
    at = 0
    for i, piece in enumerate(pieces):
        first, last = i == 0 and whole, i == len(pieces) - 1 and whole
        starts = [0] if first else range(at, len(got) - len(piece) + 1)
        if last and not first:
            starts = [max(at, len(got) - len(piece))]
        for start in starts:
            here = got[start:start + len(piece)]
            if len(here) == len(piece) and all(map(agree, piece, here)):
                at = start + len(piece)
                break
        else:
            wrong = next((line for line in piece if not any(agree(line, other) for other in got[at:])), piece[0])
            return f"shows '{wrong.strip()}', which is not printed (there)"
    if whole and at != len(got) and pieces[-1]:
        return f"leaves out '{got[at].strip()}'"
    return None


class Shell:
    """bash in `folder`, kept for all commands of a document."""

    def __init__(self, folder):
        self.process = subprocess.Popen(["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

    def run(self, command):
        """(exit status, lines printed)"""
        self.process.stdin.write(f'{command}\nprintf "\\n{ENDED} %d\\n" $?\n')
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            line = line.rstrip("\n").split("\r")[-1]
            if line.startswith(ENDED):
                if lines and not lines[-1]:
                    lines.pop()
                return int(line.split()[-1]), lines
            lines.append(line)
        return 1, lines + ["the shell has ended"]


def check(document, folder, digits):
    """What is wrong with a document, and how many blocks were compared."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, place in (("scripts", ROOT / "scripts"), ("examples", ROOT / "examples"), ("test", ROOT / "test"), ("digits", digits)):
        (folder / name).symlink_to(place)
    shell, wrong, compared = Shell(folder), [], 0
    text = (ROOT / document).read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("text")) + 1
        if block["kind"] == "cpp":
            if not block["command"]:
                continue
            status, printed = shell.run(block["command"])
            written = folder / block["file"]
            got = written.read_text(encoding="utf-8").splitlines() if written.exists() else []
            if status != 0 or not got:
                wrong.append(f"{document}:{line}: '{block['command']}' ended with status {status}: {printed}")
                continue
            result = difference(block["text"].splitlines(), got, whole=False)
            compared += 1
            if result:
                wrong.append(f"{document}:{line}: {block['file']} of '{block['command']}': {result}")
            continue
        commands = commands_of(block["text"])
        if not any(shown for _, shown in commands):
            continue
        for command, shown in commands:
            status, got = shell.run(command)
            got = [line for line in got if not PROGRESS.fullmatch(line) or any(agree(other, line) for other in shown)]
            result = difference(shown, got, whole=True) if shown else None
            if status != 0:
                result = f"status {status}: " + "\n".join(got[-3:])
            if result:
                wrong.append(f"{document}:{line}: '{command}': {result}")
            compared += 1
    return wrong, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--digits", type=pathlib.Path, required=True)
    parser.add_argument("documents", nargs="+")
    options = parser.parse_args()
    failed = False
    for document in options.documents:
        wrong, compared = check(document, options.folder / document.replace("/", "-"), options.digits.resolve())
        if not compared:
            wrong.append(f"{document}: no block was compared")
        print(f"{document}: {compared} compared")
        for text in wrong:
            print(text, file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
