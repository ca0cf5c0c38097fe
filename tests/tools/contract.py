# SPDX-License-Identifier: BSD-3-Clause
"""The clauses of docs/contract and their scope, for `clauses` and `check-contract`."""
import os
import re

import house

TEXTS = (('docs/contract/spot.md', 'S-'), ('docs/contract/actor.md', 'A-'))
SCOPE = 'docs/contract/scope.tsv'
CLAUSE = re.compile(r'^- \*\*([A-Z]+-C?\d+)\*\*', re.M)
NAME = re.compile(r'\b[SA]-(?!AMB-)[A-Z]+-C?\d+\b')


def clauses(root):
    """Ids of all clauses in the order of the texts."""
    return [prefix + c for path, prefix in TEXTS if os.path.exists(os.path.join(root, path))
            for c in CLAUSE.findall(house.text_of(root, path))]


def scope(root):
    """({id: milestone as int, 'later' or 'out'}, findings) of scope.tsv."""
    found, due = [], {}
    for n, line in enumerate(house.text_of(root, SCOPE).split('\n'), 1):
        if not line or line.startswith('#'):
            continue
        parts = line.split('\t')
        if len(parts) != 3 or not all(p.strip() for p in parts):
            found.append('%s:%d: wanted: id, milestone, reason' % (SCOPE, n))
            continue
        name, when, _ = parts
        if name in due:
            found.append('%s:%d: %s twice' % (SCOPE, n, name))
        if not when.isdigit() and when not in ('later', 'out'):
            found.append('%s:%d: milestone %r' % (SCOPE, n, when))
        due[name] = int(when) if when.isdigit() else when
    return due, found
