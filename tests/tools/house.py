# SPDX-License-Identifier: BSD-3-Clause
"""What the checks of tests/tools share: the list of files, C text without comments, self-tests.

A check is a program that prints one line a finding (`path:line: what`) and exits 1 when there is
one. With --self-test it proves that it can fail: it runs on small trees of its own making.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True


def root_dir():
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tracked(root, *suffixes):
    """Paths of the project's files, relative to root: those in git or about to be, sorted."""
    if os.path.exists(os.path.join(root, '.git')):
        out = subprocess.run(['git', '-C', root, 'ls-files', '-co', '--exclude-standard', '-z'],
                             check=True, stdout=subprocess.PIPE).stdout.decode()
        names = [n for n in out.split('\0') if n and os.path.isfile(os.path.join(root, n))]
    else:
        names = []
        for where, dirs, files in os.walk(root):
            dirs[:] = [d for d in dirs if d != '.git' and
                       not (where == root and d.startswith('build'))]
            names += [os.path.relpath(os.path.join(where, f), root) for f in files]
    return sorted(n for n in names if not suffixes or n.endswith(suffixes))


def text_of(root, path):
    with open(os.path.join(root, path), encoding='utf-8', errors='replace') as f:
        return f.read()


_C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def bare_c(text, keep_strings=False):
    """C text with comments (and the insides of strings) blanked; line numbers stay as they are."""
    def blank(m):
        t = m.group(0)
        if t[0] in '"\'':
            return t if keep_strings else t[0] + t[-1]
        return re.sub(r'[^\n]', ' ', t)
    return _C_TOKEN.sub(blank, text)


def functions(bare):
    """(name, first line, lines in the body) of each function of clang-formatted, bare C text."""
    lines = bare.split('\n')
    found = []
    start = None
    for i, line in enumerate(lines):
        if line.rstrip() == '{' and start is None:
            start = i
        elif line.startswith('}') and start is not None:
            head = ' '.join(lines[max(0, start - 8):start])
            names = re.findall(r'(\w+)\s*\(', head.split(';')[-1].split('}')[-1])
            names = [n for n in names if n not in ('__attribute__', '__rte_aligned')]
            found.append((names[0] if names else '?', start + 1, i - start - 1))
            start = None
    return found


def read_allow(root, path):
    """An allow-list: lines `kind path name reason...`; # starts a comment. Reason is required."""
    allowed = {}
    for n, line in enumerate(text_of(root, path).split('\n'), 1):
        line = line.split('#')[0].strip()
        if not line:
            continue
        words = line.split(None, 3)
        if len(words) < 4:
            raise SystemExit('%s:%d: wanted: kind path name reason' % (path, n))
        allowed[tuple(words[:3])] = words[3]
    return allowed


class Tree:
    """A small tree on disk for self-tests: Tree({'a.c': 'text'}) as a context manager."""

    def __init__(self, files):
        self.files = files

    def __enter__(self):
        self.tmp = tempfile.TemporaryDirectory(prefix='spl-check-')
        for path, text in self.files.items():
            full = os.path.join(self.tmp.name, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, 'w', encoding='utf-8') as f:
                f.write(text)
        return self.tmp.name

    def __exit__(self, *_):
        self.tmp.cleanup()


def run_check(find, cases):
    """main() of a check. find(root) gives findings; cases are (files, how many, a needle)."""
    if sys.argv[1:] == ['--self-test']:
        bad = 0
        for files, count, needle in cases:
            with Tree(files) as root:
                got = find(root)
            if len(got) != count or (needle and needle not in '\n'.join(got)):
                bad = 1
                print('self-test: %s: wanted %d findings with %r, got %r' %
                      (list(files), count, needle, got))
        sys.exit(bad)
    if sys.argv[1:]:
        sys.exit('usage: %s [--self-test]' % sys.argv[0])
    got = find(root_dir())
    print('\n'.join(got), end='\n' if got else '')
    sys.exit(1 if got else 0)
