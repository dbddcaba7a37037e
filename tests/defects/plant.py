"""Writes the rules of bounds with defects in them, each behind a number: plant.py SOURCE OUTPUT.

A defect is a place in a source file of the rules, what stands there and what a mistaken author might have written. The
program tests/defects_test.cpp is linked with the planted files in place of the library's own and turns the defects on
one by one: executions must find each. A place that is no longer in the source, or is there twice, is an error.
"""
import json
import re
import sys


def place_of(text):
    """The text with any white space between its words."""
    words = re.findall(r'\w+|[^\w\s]', text)
    return re.compile(r'\s*'.join(re.escape(word) for word in words))


def planted(source, name, defects):
    text = source
    for defect in defects:
        if defect['file'] != name:
            continue
        within = defect.get('after', '')
        start = text.index(within) if within else 0
        found = [m for m in place_of(defect['right']).finditer(text, start)]
        if not found or (not within and len(found) > 1):
            sys.exit(f"{name}: {len(found)} places for defect {defect['id']}: {defect['right']}")
        m = found[0]
        both = f"(planted({defect['id']}) ? ({defect['wrong']}) : ({m.group(0)}))"
        text = text[:m.start()] + both + text[m.end():]
    head = text.index('namespace plumbline {')
    return text[:head] + 'bool planted(int defect);\n' + text[head:]


def main():
    source, output, listed = sys.argv[1:]
    with open(listed) as file:
        defects = json.load(file)['defects']
    with open(source) as file:
        text = file.read()
    with open(output, 'w') as file:
        file.write(planted(text, source.rsplit('/', 1)[-1], defects))


main()
