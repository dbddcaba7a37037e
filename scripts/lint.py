#!/usr/bin/env python3
"""The rules of the house that no compiler checks. Prints file:line of each breach, exits 1 if any.

1. Operations hold no floating literal: constants come from exact rationals or from options, since a
   binary64 literal stays wrong at 50 digits. Options and presets are the exception: their numbers
   are binary64 by definition, so files named options.* and presets.* may write them down.
2. Each room includes only what ROOMS allows.
3. Source files end by line 400.
4. Nothing branches on an operation's name; the registry has a field for it or needs one.
5. No markers of unfinished work.
6. Random numbers come from Philox, so fixtures do not know the standard library's.
"""

import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
CPP = {".cpp", ".hpp", ".c", ".h", ".cu", ".cuh"}
SOURCE = CPP | {".py", ".sh"}
LONGEST = 400

# Folders of reference/ that are machinery; every other folder there is an operation.
MACHINERY = {"numeric", "tensor", "mask", "operation", "registry"}

# Files of an operation that hold data instead of maths.
DATA = {"options", "presets"}

# room -> what it may include, as path prefixes; a room may always include itself.
# A prefix without a final slash names one file. The longest matching room wins.
CORE = ["reference/error.hpp"]
OPERATION = "reference/<op>/"
ROOMS = {
    "reference/numeric/": CORE,
    "reference/tensor/": CORE + ["reference/numeric/"],
    "reference/mask/": CORE + ["reference/numeric/", "reference/tensor/"],
    "reference/operation/": CORE + ["reference/numeric/", "reference/tensor/", "reference/mask/"],
    "reference/": ["reference/"],
    OPERATION: ["reference/"],
    "fixtures/": ["reference/"],
    "verdict/": ["reference/"],
    "gradcheck/": ["reference/"],
    "device/": [],
    "bindings/": ["reference/", "verdict/", "fixtures/"],
}
# Allowed by a prefix above, forbidden all the same.
NEVER = {
    OPERATION: ["reference/registry/"],
}
# Headers of others that a room must not know.
FOREIGN = {
    "reference/numeric/": ["nlohmann/", "CLI/"],
    "reference/tensor/": ["nlohmann/", "CLI/"],
    "reference/mask/": ["nlohmann/", "CLI/"],
    "reference/operation/": ["nlohmann/", "CLI/"],
    OPERATION: ["nlohmann/", "CLI/", "boost/", "mpfr.h", "gmp.h"],
    "fixtures/": ["random"],
    "device/": ["nlohmann/", "CLI/"],
}
OURS = {"reference", "fixtures", "verdict", "gradcheck", "properties", "device", "tools", "bindings", "tests"}

FLOATING = re.compile(
    r"""(?<![\w.])(?:
        0[xX][0-9a-fA-F']*\.?[0-9a-fA-F']*[pP][+-]?\d+
      | (?:\d[\d']*\.[\d']*|\.\d[\d']*)(?:[eE][+-]?\d+)?
      | \d[\d']*[eE][+-]?\d+
    )[fFlL]?""",
    re.VERBOSE,
)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OP_BRANCH = re.compile(
    r"\bif\s*(?:constexpr\s*)?\([^;{]*\b(?:op|operation|op_name|operation_name)"
    r'(?:\(\))?(?:(?:\.|->)name(?:\(\))?)?\s*[=!]=(?!\s*(?:nullptr|std::nullopt)\b)'
)
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME)\b")

TOKEN = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'
    """,
    re.VERBOSE | re.DOTALL,
)


def blank(text):
    """Replaces comments and literals of characters by spaces; line numbers stay."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def files():
    """Tracked files and new ones that git does not ignore; without git, all but build folders."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True,
        ).stdout.decode().split("\0")
        names = sorted(set(filter(None, listed)))
    except (OSError, subprocess.CalledProcessError):
        names = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
        names = [name for name in names if not name.startswith(("build", ".git/", ".cache/"))]
    return [name for name in names if (ROOT / name).is_file()]


def operation_of(name):
    parts = PurePosixPath(name).parts
    if len(parts) >= 3 and parts[0] == "reference" and parts[1] not in MACHINERY:
        return parts[1]
    return None


def room_of(name):
    if operation_of(name):
        return OPERATION
    rooms = [room for room in ROOMS if name.startswith(room)]
    return max(rooms, key=len, default=None)


def resolve(name, quote, target):
    """The path of an included file of ours, seen from the root; None if it is somebody else's."""
    if quote == '"':
        beside = (ROOT / name).parent / target
        if beside.is_file():
            return beside.resolve().relative_to(ROOT).as_posix()
    target = target.removeprefix("plumbline/")
    return target if PurePosixPath(target).parts[0] in OURS else None


def allowed(name, room, target):
    own = f"reference/{operation_of(name)}/" if room == OPERATION else room
    if any(target.startswith(prefix) for prefix in NEVER.get(room, [])):
        return False
    return target.startswith(own) or any(target.startswith(prefix) for prefix in ROOMS[room])


def check_includes(name, text):
    room = room_of(name)
    if room is None:
        return
    # Comments are blanked, strings are not: the target of an include is a string.
    for number, (raw, code) in enumerate(zip(text.split("\n"), blank(text).split("\n")), 1):
        match = INCLUDE.match(raw)
        if not match or not code.lstrip().startswith("#"):
            continue
        quote, spelled = match.groups()
        target = resolve(name, quote, spelled)
        if target is None:
            for prefix in FOREIGN.get(room, []):
                if spelled == prefix or (prefix.endswith("/") and spelled.startswith(prefix)):
                    yield number, f"{room} must not include {spelled}"
        elif not allowed(name, room, target):
            yield number, f"{room} must not include {target}"


def check_literals(name, code):
    if operation_of(name) is None or PurePosixPath(name).stem in DATA:
        return
    for number, line in enumerate(code.split("\n"), 1):
        if INCLUDE.match(line):
            continue
        for match in FLOATING.finditer(line):
            yield number, f"floating literal {match.group()} in an operation"


def check_branches(code):
    for match in OP_BRANCH.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, "branch on an operation's name"


def check(name):
    path = ROOT / name
    data = path.read_bytes()
    if b"\0" in data:
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return
    for number, line in enumerate(text.split("\n"), 1):
        if UNFINISHED.search(line):
            yield number, "marker of unfinished work"
    if path.suffix in SOURCE or name in {"dev", "meson.build"}:
        count = len(text.splitlines())
        if count > LONGEST:
            yield LONGEST + 1, f"{count} lines, more than {LONGEST}: split it by idea"
    if path.suffix in CPP:
        code = blank(text)
        yield from check_includes(name, text)
        yield from check_literals(name, code)
        yield from check_branches(code)


def main():
    breaches = 0
    for name in files():
        for number, message in sorted(check(name)):
            print(f"{name}:{number}: {message}")
            breaches += 1
    if breaches:
        print(f"lint: {breaches} breach{'es' if breaches > 1 else ''}", file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
