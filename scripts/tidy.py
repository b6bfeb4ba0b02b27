#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the style that a compiler does not see.

usage: tidy.py SOURCE_ROOT     exits 1 and names file, line, what is wrong and what to write instead
"""
import pathlib
import re
import subprocess
import sys

WIDTH = 100
SOURCE = (".h", ".cc", ".py", ".sh", ".cmake", ".txt", ".json", ".yaml", ".yml")

# pattern, what to do instead, path prefixes where it is at home
BANNED = [
    (r"\b(steady_clock|system_clock|high_resolution_clock)\b|\bclock_gettime\(|\bgettimeofday\(",
     "take an Instant as an argument, or call net::now() in io/",
     ("src/io/net/clock.cc", "bench/")),
    (r"\bstd::(random_device|mt19937\w*|rand)\b|\b(s?rand|drand48)\(",
     "draw from an Rng argument (base/rng.h)", ("src/base/rng.cc",)),
    (r"\bsleep_for\b|\bsleep_until\b|\b(u|nano)?sleep\(",
     "arm a net::Timer", ("e2e/", "bench/")),
    (r"\bstd::(thread|jthread|async)\b|\bpthread_create\(",
     "run on a net::Loop; threads start in the listed files",
     ("src/io/net/", "src/io/host/", "src/io/telemetry/", "src/io/observe/", "src/io/gateway/",
      "src/app/", "src/emulator/", "e2e/", "bench/")),
    (r"\bthrow\b(?! *\()|\bthrow\(", "return a Result",
     # Refusals unwind inside this one file, beside the JSON library's own exceptions.
     ("src/emulator/request_json.cc",)),
    (r"\bcatch *\(", "end a library's exceptions in the file that wraps it, listed here",
     ("src/io/config/", "src/io/json/", "src/io/engine/", "src/io/observe/", "src/io/gateway/",
      "src/emulator/", "src/app/")),
    (r"\b(printf|std::cout|std::cerr)\b", "return the text, or log through io/telemetry",
     ("src/base/check.cc", "src/app/", "src/emulator/", "src/io/telemetry/", "bench/")),
    (r"\b(strcpy|strcat|sprintf|gets|strtok|atoi|atof)\(",
     "use std::string and std::from_chars", ()),
    (r"#include <(iostream|boost/|nlohmann/json.hpp|yaml-cpp/|CLI/|spdlog/)",
     "keep library headers in .cc files", ("",)),  # judged for headers only, below
    (r"\b(TODO|FIXME|XXX|HACK)\b", "finish it, or say it in the README", ()),
]
HEADER_ONLY = {8}


def tracked(root):
    out = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True)
    if out.returncode == 0:
        return [root / line for line in out.stdout.splitlines()]
    skip = {"build", ".git"}
    return [p for p in root.rglob("*") if p.is_file() and not skip & set(p.relative_to(root).parts)]


def strip_comment(line):
    """Code without its // comment and without string contents."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//")[0]


def check_source(path, name, lines, errors):
    if name.endswith((".h", ".cc")):
        if not lines or lines[0] != "// SPDX-License-Identifier: Apache-2.0":
            errors.append(f"{name}:1: begin with '// SPDX-License-Identifier: Apache-2.0'")
        elif len(lines) < 2 or not lines[1].startswith("// "):
            errors.append(f"{name}:2: say the file's job in a comment")
        if name.endswith(".h") and "#pragma once" not in lines[:40]:
            errors.append(f"{name}:1: write #pragma once")
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH and not name.startswith(("testdata/", "data/", "docs/reference/")):
            errors.append(f"{name}:{number}: {len(line)} columns; {WIDTH} are the limit")
        if line != line.rstrip():
            errors.append(f"{name}:{number}: trailing space")
        if "\t" in line and not name.endswith("Makefile"):
            errors.append(f"{name}:{number}: tab")
        if not name.endswith((".h", ".cc")):
            continue
        code = strip_comment(line)
        is_test = name.endswith(("_test.cc", "_fuzz.cc", "_bench.cc"))
        for index, (pattern, instead, homes) in enumerate(BANNED):
            text = line if index in (len(BANNED) - 1, 8) else code
            if not re.search(pattern, text):
                continue
            if index in HEADER_ONLY:
                if name.endswith(".h") and name.startswith("src/"):
                    errors.append(f"{name}:{number}: {instead}")
                continue
            if is_test and index in (3, 5, 6):
                continue
            if not name.startswith(homes or ("\0",)):
                errors.append(f"{name}:{number}: '{line.strip()[:60]}': {instead}")


def check_settings(sources, errors):
    """Every setting that core/spec declares has a reader outside core/spec: a line of the program
    that names the member. Members of the same name stand for each other."""
    declared = re.compile(r"\bv\(c\.(\w+)")
    readers = "\n".join(
        "\n".join(line for line in map(strip_comment, lines) if not declared.search(line))
        for name, lines in sources.items()
        if name.startswith(("src/app/", "src/io/", "src/core/")) and not name.endswith("_test.cc")
        and (not name.startswith("src/core/spec/") or name.endswith("/compile.cc")))
    read = set(re.findall(r"(?:\.|->)(\w+)", readers))
    for name, lines in sources.items():
        if not name.startswith("src/core/spec/") or not name.endswith(".h"):
            continue
        for number, line in enumerate(lines, 1):
            for member in declared.findall(line):
                if member not in read:
                    errors.append(f"{name}:{number}: nobody reads the setting `{member}`: use it "
                                  "or take it away")


def main(root):
    errors = []
    sources = {}
    for path in tracked(root):
        name = str(path.relative_to(root))
        if path.suffix not in SOURCE or not path.is_file() or name.startswith("fuzz/corpus/"):
            continue
        if name.startswith(("testdata/", "data/", "docs/", "deploy/")) or name.endswith(".inc"):
            continue
        if path.name in ("schema.json", "package-lock.json"):
            continue
        try:
            lines = path.read_text().split("\n")
        except UnicodeDecodeError:
            errors.append(f"{name}: not UTF-8")
            continue
        check_source(path, name, lines, errors)
        if name.startswith("src/"):
            sources[name] = lines
    check_settings(sources, errors)
    for folder in sorted({p.parent for p in (root / "src").rglob("*.h")}):
        if not (folder / "README.md").exists():
            errors.append(f"{folder.relative_to(root)}: write README.md: why its own library?")
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
