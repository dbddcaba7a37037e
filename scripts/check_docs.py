#!/usr/bin/env python3
"""Every operation has a page, every page an operation, and every link inside the repository resolves.

usage: check_docs.py PATH_OF_PLUMBLINE
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+)(?:(?!\1).)+?\1")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def pages():
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))


def anchors(path):
    """Names that headings of a page get on code-hosting sites."""
    found, seen = set(), {}
    for line in FENCE.sub(blank, path.read_text(encoding="utf-8")).splitlines():
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).replace("`", "")
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            found.add(f"{slug}-{count}" if count else slug)
    return found


def check_links(page):
    text = SPAN.sub(blank, FENCE.sub(blank, page.read_text(encoding="utf-8")))
    for match in LINK.finditer(text):
        link = unquote(match.group(1))
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        line = text.count("\n", 0, match.start()) + 1
        if not path.exists():
            yield line, f"no such file: {link}"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield line, f"no such heading: {link}"


def check_operations(program):
    listed = subprocess.run([program, "ops", "--names"], check=True, capture_output=True, text=True)
    names = set(listed.stdout.split())
    if not names:
        yield f"{program} ops --names: found no operation"
    written = {page.stem for page in (ROOT / "docs/ops").glob("*.md")}
    for name in sorted(names - written):
        yield f"docs/ops/{name}.md: missing, {name} is an operation"
    for name in sorted(written - names):
        yield f"docs/ops/{name}.md: no operation has this name"


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    problems, count = list(check_operations(sys.argv[1])), 0
    for page in pages():
        count += 1
        for line, message in check_links(page):
            problems.append(f"{page.relative_to(ROOT)}:{line}: {message}")
    for problem in problems:
        print(problem)
    if not problems:
        print(f"docs: {count} pages, every operation has one, every link resolves")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
