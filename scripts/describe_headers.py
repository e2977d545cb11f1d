#!/usr/bin/env python3
"""Writes the reference of the C++ DSL: the public declarations of the headers that models include, with their comments.

usage: describe_headers.py ROOT HEADER... > dsl.md

A page has a section for each header, a heading for each `// Section.` comment, class and struct, and for each `///` comment its
declarations and its text. What is private, bodies of functions and what has no comment of its own (it stands with the one above) follow
from the headers: nothing is written here.
"""

import pathlib
import re
import sys

SECTION = re.compile(r"^// (?P<title>[A-Z][^\n]*?)\.?$")
SKIPPED = re.compile(r"^(#|friend |using |class \w+;|struct \w+;|extern )")


def read_header(path):
    """(title, introduction, lines of declarations) of a header."""
    lines = path.read_text(encoding="utf-8").splitlines()
    title = re.match(r"//===- \S+ - (.*?) -*\*- C\+\+ -\*-===//|//===- \S+ - (.*?) -+===//", lines[0])
    end = next(i for i, line in enumerate(lines[1:], 1) if not line.startswith("//"))
    introduction = [line[3:] if line.startswith("// ") else "" for line in lines[1:end] if not line.startswith("//===")]
    return (title[1] or title[2]).strip(" -"), introduction, lines[end:]


def declaration_end(text):
    """(signature, length, opens a scope) of the declaration that `text` begins with."""
    depth = 0
    is_scope = re.match(r"(template <[^>]*> )?(struct|class|enum|enum class)\b[^;({]*\{", text)
    initializers = None
    for i, char in enumerate(text):
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == ":" and depth == 0 and initializers is None and text[:i].rstrip().endswith(")") and text[i + 1 : i + 2] != ":":
            initializers = i
        elif char == ";" and depth == 0:
            return text[: i + 1], i + 1, False
        elif char == "{" and depth == 0:
            if is_scope and not text.startswith("enum"):
                return text[:i].rstrip(), i + 1, True
            if text[:i].rstrip().endswith("=") or (initializers is not None and re.search(r"\w$", text[:i])) or (is_scope):
                close = match_brace(text, i)  # an initial value, of a member too, or the list of an enumeration
                if is_scope or initializers is None:
                    following = text.index(";", close)
                    return text[: following + 1], following + 1, False
                continue
            close = match_brace(text, i)
            if close + 1 < len(text) and text[close + 1] == ";" and "(" not in text[:i]:
                return text[: close + 2], close + 2, False
            signature = text[:i] if initializers is None else text[:initializers]
            return signature.rstrip() + ";", close + 1, False
    raise ValueError(f"no declaration: {text[:80]}")


def match_brace(text, at):
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
    raise ValueError(f"no end: {text[at:at + 80]}")


def tidy(signature):
    """Without `inline`, joined lines."""
    lines = [line.strip() for line in re.sub(r"\binline ", "", signature).splitlines()]
    return "\n".join([lines[0]] + [("" if line == "};" else "  ") + line.replace("///<", "//") for line in lines[1:]])


class Page:
    """Declarations in order: headings, and groups of a comment and what it describes."""

    def __init__(self):
        self.out = []
        self.signatures, self.comment = [], []

    def flush(self):
        if self.signatures:
            self.out += ["```cpp", *self.signatures, "```", ""]
            if self.comment:
                self.out += [*self.comment, ""]
        elif self.comment:
            self.out += [*self.comment, ""]
        self.signatures, self.comment = [], []

    def heading(self, level, text):
        self.flush()
        self.out += ["#" * level + " " + text, ""]

    def add(self, comment, signature):
        if "(" not in signature.split("=")[0].split("//")[0] and not signature.startswith("enum"):
            # A member: its comment is printed with it.
            if self.comment:
                self.flush()
            self.signatures += [*(f"// {line}" for line in comment), signature]
            return
        if comment or not self.signatures:
            self.flush()
            self.comment = comment
        self.signatures.append(signature)


def describe(page, lines, level):
    """Adds the declarations of `lines`; of a class what is public."""
    text = "\n".join(lines)
    comment, at, public = [], 0, True
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end].strip()
        if line.startswith("///"):
            comment.append(line[3:].strip())
        elif line.startswith("//"):
            section = SECTION.match(line)
            if section and level == 3 and not text[end + 1 :].lstrip(" ").startswith("//"):
                page.heading(3, section["title"])
        elif line in ("public:", "private:"):
            public = line == "public:"
        elif not line or line.startswith("}"):
            if not line and public and not comment:
                page.flush()
        elif SKIPPED.match(line) or not public:
            comment = []
            if not SKIPPED.match(line):
                at = at + len(text[at:end]) - len(text[at:end].lstrip())
                _, length, scope = declaration_end(text[at:])
                at = match_brace(text, at + length - 1) + 2 if scope else at + length
                at += len(re.match(r"[ ;]*(///<.*)?\n?", text[at:])[0])
                continue
        else:
            at = at + len(text[at:end]) - len(text[at:end].lstrip())
            signature, length, scope = declaration_end(text[at:])
            rest_end = text.find("\n", at + length)
            trailing = text[at + length : rest_end if rest_end >= 0 else len(text)].strip()
            if scope:
                close = match_brace(text, at + length - 1)
                page.heading(min(level, 4), "`" + re.sub(r"\s+", " ", re.sub(r" (final|: public .*)$", "", signature)) + "`")
                page.out += [*comment, ""] if comment else []
                describe(page, text[at + length : close].split("\n"), level + 1)
                page.flush()
                at = text.index(";", close) + 1
            else:
                shown = tidy(signature)
                if trailing.startswith("///<"):
                    shown += " // " + trailing[4:].strip()
                    at = rest_end if rest_end >= 0 else len(text)
                    more = re.match(r"\n\s*///< ?(.*)", text[at:])
                    while more:
                        shown += "\n  // " + more[1]
                        at += more.end()
                        more = re.match(r"\n\s*///< ?(.*)", text[at:])
                else:
                    at += length
                page.add(comment, shown)
            comment = []
            at += len(re.match(r"[ ;]*\n?", text[at:])[0])
            continue
        at = end + 1
    page.flush()


def main():
    root = pathlib.Path(sys.argv[1])
    print("<!-- Made from the headers by scripts/generate-docs: do not edit. -->\n# The DSL\n")
    print("What the headers declare that a model in C++ includes; [write your own model](../write-a-model.md) introduces them.\n")
    for name in sys.argv[2:]:
        title, introduction, lines = read_header(root / name)
        print(f"## {name}: {title}")
        code = []
        for line in [*introduction, None]:
            if line is not None and line.startswith("  "):
                code.append(line[2:])
                continue
            if code:
                print("```cpp\n" + "\n".join(code) + "\n```")
                code = []
            if line is not None:
                print(line)
        page = Page()
        lines = re.sub(r"namespace mlir \{.*?\} // namespace mlir", "", "\n".join(lines), flags=re.S).split("\n")
        describe(page, [line for line in lines if not re.match(r"^(#|namespace fsdp|} // namespace)", line)], 3)
        print(re.sub(r"\n{3,}", "\n\n", "\n".join(page.out)))


if __name__ == "__main__":
    main()
