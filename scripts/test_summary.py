#!/usr/bin/env python3
"""Count test cases after `meson test`: the last line printed is `N passed, M failed`.

usage: test_summary.py MESON_LOGS MESON_EXIT_STATUS

The cases come from JUnit. Meson's JUnit writer leaves a time-out without a mark, and a program that
crashes may leave no case at all, so programs that testlog.json calls bad and JUnit does not are
counted as one failure each.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

FINE = {"OK", "SKIP", "EXPECTEDFAIL"}


def read_cases(path):
    """Returns (passed, skipped, failed), the last two as lists of (suite, case)."""
    passed, skipped, failed = [], [], []
    for suite in ElementTree.parse(path).iter("testsuite"):
        for case in suite.findall("testcase"):
            name = (suite.get("name", ""), case.get("name", ""))
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(name)
            elif case.find("skipped") is not None or case.get("status") == "notrun":
                skipped.append(name)
            else:
                passed.append(name)
    return passed, skipped, failed


def belongs(case, program):
    """True if a JUnit case came from a program of testlog.json.

    A whole program is one case of its name; the cases of a GoogleTest or TAP program stand in a
    suite `project.program[.suite]`. Versions of Meson differ in writing `suite / program`.
    """
    suite, name = case
    short = program.split(" / ")[-1]
    return name in (program, short) or any(f".{p}." in f"{suite}." for p in (program, short))


def bad_programs(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["result"] not in FINE:
                yield entry["name"], entry["result"]


def main():
    logs, status = Path(sys.argv[1]), int(sys.argv[2])
    junit, log = logs / "testlog.junit.xml", logs / "testlog.json"
    if not junit.exists() or not log.exists():
        print(f"no test results in {logs}")
        print("0 passed, 1 failed" if status else "0 passed, 0 failed")
        return 1
    passed, skipped, failed = read_cases(junit)
    for program, result in bad_programs(log):
        if not any(belongs(case, program) for case in failed):
            failed.append((program, result))
            # A timed-out program has an unmarked case of its own name: it did not pass.
            passed = [case for case in passed if case[1] not in (program, program.split(" / ")[-1])]
    if status and not failed:
        failed.append(("meson test", f"exit status {status}"))
    for suite, name in failed:
        print(f"failed: {suite}: {name}")
    if skipped:
        print(f"{len(skipped)} skipped")
    print(f"{len(passed)} passed, {len(failed)} failed")
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main())
