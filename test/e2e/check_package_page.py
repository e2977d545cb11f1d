"""check_package_page.py PREFIX: the page of an installed package names nothing that is not installed.

Its links lead to what is there, its table of contents is true, and its commands are tools of the package, of the system, or what an
earlier one builds.
"""

import pathlib
import re
import sys

prefix = pathlib.Path(sys.argv[1])
folder = prefix / "share" / "doc" / "fsdpc"
text = (folder / "README.md").read_text()
links = re.findall(r"\]\(([^)#]+)", text)
assert len(links) > 10, links
for link in links:
    assert link.startswith("http") or (folder / link).exists(), f"README.md links to '{link}', which is not installed"
for named in re.findall(r"`((?:bin|lib|include|share)/[^` ]+)`", text):
    # The runtime library is in packages of scripts/build-package.
    assert named == "lib/fsdpc" or (prefix / named).exists(), f"README.md names '{named}', which is not installed"
commands = re.findall(r"^\$ (.*)$|&& ([^&]*)", text, re.MULTILINE)
tools = {"cp", "cd", "cmake"} | {f.name for f in (prefix / "bin").iterdir()} | {"./data", "./train"}
for command in (c for pair in commands for c in pair if c):
    assert command.split()[0] in tools, f"README.md runs '{command.split()[0]}', which is not installed"
for absolute in re.findall(r"(?<=\s)/usr/(\S+)", text):
    assert (prefix / absolute).exists(), f"README.md names '/usr/{absolute}', which is not installed"
for word in ("./demo", "./check", "bench/", "scripts/", "test/"):
    assert word not in text, f"README.md names '{word}', which is not installed"
