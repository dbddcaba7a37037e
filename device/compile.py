#!/usr/bin/env python3
"""Compiles a .cu file for sm_80 and sm_90a and holds what ptxas says of its kernels against a budget.

usage: compile.py [--update] NVCC BUDGET SOURCE OBJECT [DEPFILE]

The flags are fixed: a debug build would pass -G, and then every kernel spills. Refused are
  - spills to local memory, and stack frames;
  - remarks C75xx: ptxas serialises wgmma when registers move between fence and wait;
  - more than eight registers beyond the budget of the kernel, or a kernel that the budget does not name.
Registers are compared under the nvcc version that the budget was written with; other versions
allocate differently, so they only print. --update writes the numbers found into the budget.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURES = {"sm_80": "80", "sm_90a": "90a"}
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
# The number that ptxas finds changes by a few with the file's path; a GPU grants threads eight at a time.
SLACK = 8
REGISTERS = re.compile(r"Used (\d+) registers")
REMARK = re.compile(r"\bC75\d\d\b")


def version_of(nvcc):
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"release (\d+\.\d+)", text).group(1)


def short_names(mangled):
    """entry<plumbline::device::gpu::Product<64> >(...) -> Product<64>"""
    text = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True).stdout
    names = {}
    for symbol, name in zip(mangled, text.splitlines()):
        inside = name.split("entry<", 1)[1].split(">(", 1)[0] if "entry<" in name else name
        names[symbol] = inside.replace("plumbline::device::gpu::", "").replace(" >", ">").strip()
    return names


def measure(log):
    """[(mangled name, architecture, registers, stack bytes, spill bytes)]"""
    found, entry, frame = [], None, (0, 0)
    for line in log.splitlines():
        if match := ENTRY.search(line):
            entry, frame = match.groups(), (0, 0)
        elif match := FRAME.search(line):
            stack, stores, loads = map(int, match.groups())
            frame = (stack, stores + loads)
        elif entry and (match := REGISTERS.search(line)):
            found.append((*entry, int(match.group(1)), *frame))
            entry = None
    return found


def main():
    arguments = sys.argv[1:]
    update = arguments[:1] == ["--update"]
    nvcc, budget_file, source, target, *depfile = arguments[update:]
    command = [nvcc, "-std=c++20", "-O3", f"-I{ROOT}", "-Xptxas", "-v", "-Xcompiler", "-fPIC", "-c", source, "-o", target]
    command += [f"-gencode=arch=compute_{number},code={name}" for name, number in ARCHITECTURES.items()]
    if depfile:
        command += ["-MD", "-MF", depfile[0]]
    done = subprocess.run(command, capture_output=True, text=True)
    log = done.stdout + done.stderr
    if done.returncode:
        print(log, file=sys.stderr)
        return done.returncode

    complaints = [line.strip() for line in log.splitlines() if REMARK.search(line) or "warning" in line.lower()]
    budget = json.loads(Path(budget_file).read_text()) if Path(budget_file).exists() else {"kernels": {}}
    version = version_of(nvcc)
    comparable = update or budget.get("nvcc") == version
    found = measure(log)
    names = short_names(sorted({symbol for symbol, *_ in found}))
    for symbol, architecture, registers, stack, spilled in found:
        name = names[symbol]
        if spilled or stack:
            complaints.append(f"{name} on {architecture}: {stack} bytes of stack, {spilled} bytes spilled")
        if update:
            budget["kernels"].setdefault(name, {})[architecture] = registers
            continue
        allowed = budget["kernels"].get(name, {}).get(architecture)
        if allowed is None:
            complaints.append(f"{name} on {architecture}: {registers} registers, and the budget does not name it")
        elif registers > allowed + SLACK and comparable:
            complaints.append(f"{name} on {architecture}: {registers} registers, the budget has {allowed}")
    if update:
        lines = [f"    {json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in sorted(budget["kernels"].items())]
        text = ",\n".join(lines)
        Path(budget_file).write_text(f'{{\n  "nvcc": "{version}",\n  "kernels": {{\n{text}\n  }}\n}}\n')
    for complaint in complaints:
        print(f"{source}: {complaint}", file=sys.stderr)
    if complaints:
        Path(target).unlink(missing_ok=True)
        print("if this is meant: device/compile.py --update ... rewrites the budget", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
