#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes stub CUDA libraries, so that a torch built for CUDA loads where there is none.

usage: make_stubs.py TORCH_LIB_FOLDER OUT_FOLDER
Reads which libraries torch's own need and which symbols they miss, and compiles for each library
functions that return an error, under the right symbol versions. No device is ever found.
"""
import collections
import glob
import os
import re
import subprocess
import sys

SYSTEM_LIBRARY = r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|numa)\.so|ld-linux"
SYSTEM_VERSION = r"(GLIBC|GCC|CXXABI|GLIBCXX|GOMP|OMP|libnuma)"
# Library of a symbol without a version of its own, by its prefix.
HOMES = [("cudnn", "libcudnn"), ("nccl", "libnccl"), ("cusparseLt", "libcusparseLt"),
         ("cuFile", "libcufile"), ("cufft", "libcufft"), ("curand", "libcurand"),
         ("cusparse", "libcusparse"), ("cublasLt", "libcublasLt"), ("cublas", "libcublas"),
         ("nvrtc", "libnvrtc"), ("cupti", "libcupti"), ("nvshmem", "libnvshmem_host"),
         ("cuda", "libcudart"), ("__cuda", "libcudart")]
SPECIAL = {
    "cudaGetDeviceCount": "int cudaGetDeviceCount(int*n){if(n)*n=0;return 100;}",
    "cudaGetErrorString": 'const char*cudaGetErrorString(int e){return "stub: no CUDA here";}',
    "cudaGetErrorName": 'const char*cudaGetErrorName(int e){return "stubNoCuda";}',
    "cudaGetLastError": "int cudaGetLastError(void){return 0;}",
    "cudaDriverGetVersion": "int cudaDriverGetVersion(int*v){if(v)*v=0;return 0;}",
    "cudaRuntimeGetVersion": "int cudaRuntimeGetVersion(int*v){if(v)*v=13000;return 0;}",
    "__cudaRegisterFatBinary":
        "static void*H[4];void**__cudaRegisterFatBinary(void*p){return H;}",
}


def readelf(path, *flags):
    return subprocess.run(["readelf", *flags, path], capture_output=True, text=True).stdout


def survey(libraries):
    """(needed libraries, undefined symbols with version, defined names, libraries of a version)"""
    needed, undefined, defined = set(), set(), set()
    versions = collections.defaultdict(set)
    for path in libraries:
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-dW")))
        current = None
        for line in readelf(path, "-VW").splitlines():
            if found := re.search(r"File: (\S+)", line):
                current = found[1]
            if (found := re.search(r"Name: (\S+)", line)) and current:
                versions[found[1]].add(current)
        for line in readelf(path, "--dyn-syms", "-W").splitlines():
            parts = line.split()
            if len(parts) < 8 or not parts[0].endswith(":"):
                continue
            name, _, version = parts[7].partition("@")
            if parts[6] != "UND":
                defined.add(name)
            elif parts[4] != "WEAK":
                undefined.add((name, version.strip("@").split(" ")[0]))
    return needed, undefined, defined, versions


def home(name, version, missing, versions):
    for library in versions.get(version, ()):
        if library in missing:
            return library
    for prefix, library in HOMES:
        if name.startswith(prefix):
            for candidate in missing:
                if candidate.startswith(library + ".so"):
                    return candidate
    return None


def compile_stub(library, symbols, out):
    code, versions = [], collections.defaultdict(list)
    for name, version in symbols:
        result = "0" if name.startswith("__cuda") else "100"
        code.append(SPECIAL.get(name, f"long {name}(void){{return {result};}}"))
        versions[version].append(name)
    source, target = f"{out}/{library}.c", f"{out}/{library}"
    with open(source, "w") as file:
        file.write("\n".join(code) + "\n")
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin", "-o", target, source,
               f"-Wl,-soname,{library}"]
    if any(versions):
        script = f"{out}/{library}.map"
        with open(script, "w") as file:
            for version, names in versions.items():
                if version:
                    file.write(f"{version} {{ global: {' '.join(n + ';' for n in names)} }};\n")
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, check=True)
    os.unlink(source)


def main(folder, out):
    os.makedirs(out, exist_ok=True)
    libraries = [p for p in glob.glob(folder + "/*.so*") if "linalg" not in p]
    needed, undefined, defined, versions = survey(libraries)
    here = {os.path.basename(p) for p in libraries}
    missing = [n for n in sorted(needed - here) if not re.match(SYSTEM_LIBRARY, n)]
    by_library = {library: set() for library in missing}
    for name, version in undefined:
        if name in defined or (version and re.match(SYSTEM_VERSION, version)):
            continue
        library = home(name, version, missing, versions)
        if library:
            by_library[library].add((name, version))
    for library, symbols in by_library.items():
        compile_stub(library, sorted(symbols), out)
    print(f"stubs of {len(missing)} libraries: {' '.join(missing)}")


main(*sys.argv[1:3])
