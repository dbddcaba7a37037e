#!/usr/bin/env python3
"""guide_test.py PAGE ...: runs the blocks of pages of documentation, in order and in an empty folder. Blocks of python share
their names, blocks of bash run with the program in PATH, a block of text is what the block before printed.

PLUMBLINE_PROGRAM is the program; without it, the one in PATH. Lines that install are taken for done.
"""
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

BLOCK = re.compile(r"^```(python|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_bash(text):
    lines = [line for line in text.splitlines() if not re.match(r"(\S*pip install|\./dev) ?", line)]
    result = subprocess.run(["bash", "-e", "-c", "\n".join(lines)], capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(f"exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def run_python(text, names, where):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, where, "exec"), names)
    return printed.getvalue()


def check(page):
    names, printed, count = {"__name__": "guide"}, "", 0
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        kind, block = match.groups()
        line = text.count("\n", 0, match.start()) + 2
        where = f"{page.name}:{line}"
        try:
            if kind == "text":
                assert printed == block, f"expected\n{block}printed\n{printed}"
                continue
            count += 1
            printed = run_bash(block) if kind == "bash" else run_python("\n" * (line - 1) + block, names, where)
        except Exception:
            traceback.print_exc(limit=-4)
            print(f"FAILED: the block at {where}")
            return False
    print(f"{page.name}: {count} blocks")
    return count > 0


def main():
    pages = [Path(page).resolve() for page in sys.argv[1:]]
    program = os.environ.get("PLUMBLINE_PROGRAM")
    if program:
        os.environ["PATH"] = f"{Path(program).resolve().parent}:{os.environ['PATH']}"
    good = True
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            good = check(page) and good
            os.chdir("/")
    return 0 if good and pages else 1


if __name__ == "__main__":
    sys.exit(main())
