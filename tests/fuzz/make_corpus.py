#!/usr/bin/env python3
"""make_corpus.py [PROGRAM]: writes corpus/header, corpus/options, corpus/eval; with PROGRAM also options.dict.

The seeds are the small cases of the bad-input tests, with and without faults; the dictionary holds every name the
program knows. Same tests, same bytes.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import bad_input_csa  # noqa: E402
import bad_input_csa_layers  # noqa: E402
import bad_input_files  # noqa: E402
import bad_input_hidden  # noqa: E402
import bad_input_masks  # noqa: E402
import bad_input_operations  # noqa: E402
from bad_input_cases import BASES, base  # noqa: E402
from bad_input_hidden import with_cotangent  # noqa: E402

LONGEST = 4096


def mutated(row):
    _, _, of, _, *changes = row
    case = base(of)
    for change in changes:
        change(case)
    return case


def seeds():
    """(target, bytes)"""
    for name in BASES:
        case = with_cotangent(name, base(name))
        yield "eval", case.to_bytes()
        yield "options", json.dumps(case.metadata["options"]).encode()
    for row in bad_input_hidden.ROWS:
        yield "eval", with_cotangent(row[2], mutated(row)).to_bytes()
    for row in bad_input_files.ROWS:
        yield "header", mutated(row).to_bytes()
    for row in bad_input_operations.ROWS + bad_input_csa.ROWS + bad_input_csa_layers.OWN + bad_input_masks.ROWS:
        options = mutated(row).metadata["options"]
        if options != base(row[2]).metadata["options"]:
            yield "options", json.dumps(options).encode()


def words(program):
    """Every name in the pages of the operations."""
    found = set()

    def walk(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == "name":
                    found.add(inner)
                elif key in ("choices", "schedule"):
                    found.update(inner or [])
                elif key != "doc":
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    names = subprocess.run([program, "ops", "--names"], check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        page = subprocess.run([program, "ops", name, "--json"], check=True, capture_output=True, text=True).stdout
        walk(json.loads(page))
    return sorted(found)


def main():
    corpus = os.path.join(HERE, "corpus")
    shutil.rmtree(corpus, ignore_errors=True)
    total = 0
    for target, data in seeds():
        if len(data) > LONGEST:
            continue
        folder = os.path.join(corpus, target)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, hashlib.sha256(data).hexdigest()[:16])
        total += 0 if os.path.exists(path) else len(data)
        with open(path, "wb") as file:
            file.write(data)
    for target in sorted(os.listdir(corpus)):
        print("%s: %d seeds" % (target, len(os.listdir(os.path.join(corpus, target)))))
    print("%d bytes" % total)
    if len(sys.argv) > 1:
        with open(os.path.join(HERE, "options.dict"), "w", encoding="utf-8") as file:
            for word in words(os.path.abspath(sys.argv[1])):
                file.write(json.dumps(word) + "\n")


if __name__ == "__main__":
    main()
