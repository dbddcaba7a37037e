#!/usr/bin/env python3
"""c_symbols_test.py LIBRARY MAP HEADER: the C library exports what plumbline.map lists and plumbline.h declares, no more."""
import re
import subprocess
import sys


def main():
    library, map_path, header = sys.argv[1:]
    listed = set(re.findall(r"^\s+(plumbline_\w+);", open(map_path).read(), re.MULTILINE))
    declared = set(re.findall(r"\b(plumbline_\w+)\(", re.sub(r"/\*.*?\*/", "", open(header).read(), flags=re.DOTALL)))
    exported, problems = set(), []
    dump = subprocess.run(["nm", "--dynamic", "--defined-only", library], check=True, capture_output=True, text=True)
    for line in dump.stdout.splitlines():
        name, _, version = line.split()[-1].partition("@@")
        if re.fullmatch(r"PLUMBLINE_\d+", name):
            continue  # the version itself
        exported.add(name)
        if version != "PLUMBLINE_1":
            problems.append(f"{name} has the version {version or 'none'}")
    for what, names in (("exported, not listed", exported - listed), ("listed, not exported", listed - exported),
                        ("declared, not listed", declared - listed), ("listed, not declared", listed - declared)):
        problems += [f"{name} is {what}" for name in sorted(names)]
    for problem in problems:
        print(problem)
    print(f"{len(exported)} symbols")
    return 1 if problems or not exported else 0


if __name__ == "__main__":
    sys.exit(main())
