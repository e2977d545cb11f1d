"""Every C++ file is built: a test that no CMakeLists.txt lists never fails."""

import posixpath
import re

from tree import ROOMS


def check(tree):
    for path in tree.paths(".cpp", under=ROOMS + ("test/unit",)):
        folder, name = posixpath.split(path)
        while folder and not tree.exists(f"{folder}/CMakeLists.txt"):
            folder = posixpath.dirname(folder)
        beside = [path for path in tree.paths(".cmake", under=(folder,)) if posixpath.dirname(path) == folder] if folder else []
        listed = "".join(tree.text(path) for path in [f"{folder}/CMakeLists.txt", *beside]) if folder else ""
        inner = posixpath.relpath(path, folder) if folder else path
        # A folder of which every file belongs to one target: `file(GLOB ... CONFIGURE_DEPENDS ... *.cpp)`.
        of_folder = r"\s" if inner == name else re.escape("/" + posixpath.dirname(inner)) + "/"
        if re.search(rf"file\(GLOB \w+ CONFIGURE_DEPENDS[^)]*{of_folder}\*\.cpp\)", listed):
            continue
        if not re.search(rf"(?<![\w/]){re.escape(inner)}(?!\w)", listed):
            # `foreach(tool ...) add_executable(${tool} ${tool}.cpp)` lists it as well.
            stem = name[: -len(".cpp")]
            if "${" in listed and re.search(rf"(?<![\w/-]){re.escape(stem)}(?![\w-])", listed):
                continue
            yield path, 1, f"no CMakeLists.txt lists '{inner}'"
