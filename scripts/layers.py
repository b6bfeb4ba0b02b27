#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the includes of every source with the DEPS that CMakeLists.txt declares.

usage: layers.py SOURCE_ROOT     exits 1 and names each include that crosses an undeclared border
"""
import pathlib
import re
import sys


def declared(root):
    text = (root / "CMakeLists.txt").read_text()
    modules = {}
    for body in re.findall(r"^module\(([^)]*)\)", text, re.M):
        words = body.split()
        deps, kind = set(), None
        for word in words[1:]:
            if word in ("DEPS", "LIBS"):
                kind = word
            elif kind == "DEPS":
                deps.add(word)
        modules[words[0]] = deps
    return modules


def main(root):
    modules = declared(root)
    errors = []
    for module, deps in modules.items():
        for dep in deps - set(modules):
            errors.append(f"CMakeLists.txt: {module} depends on {dep}, which is no module")
        layer = module.split("/")[0]
        for dep in deps:
            below = dep.split("/")[0]
            allowed = {"base": set(), "core": {"base", "core"}, "io": {"base", "core", "io"},
                       "sim": {"base", "core", "sim"}, "emulator": {"base", "io", "sim"},
                       "app": {"base", "core", "io", "sim", "emulator"}}[layer]
            if below not in allowed:
                errors.append(f"CMakeLists.txt: {module} may not depend on {dep}")
    if "core/perf" in modules.get("sim/engine", set()):
        errors.append("CMakeLists.txt: sim/engine (the truth) may not share code with core/perf")
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        module = str(path.parent.relative_to(root / "src"))
        if module not in modules:
            errors.append(f"{path}: folder is no module of CMakeLists.txt")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'#include "([^"]+)"', line)
            if not found:
                continue
            target = str(pathlib.PurePosixPath(found[1]).parent)
            if target != module and target not in modules[module]:
                errors.append(f"{path}:{number}: {module} includes {found[1]} but does not declare"
                              f" {target} in its DEPS")
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
