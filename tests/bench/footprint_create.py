#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Creates Spots through the management socket, many requests under way at once.

    footprint_create.py SOCKET FROM TO

makes the counters with the numbers FROM up to TO (not included) as 36-byte ids. Exit 1 when one of
them was not created.
"""
import json
import socket
import sys

WINDOW = 1024  # requests under way


def request(i):
    return (json.dumps({'jsonrpc': '2.0', 'id': i, 'method': 'spot.get_or_create',
                        'params': {'id': f'{i:036d}', 'type': 'counter'}}) + '\n').encode()


def main():
    path, first, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    lines = s.makefile('rb')
    if json.loads(lines.readline()).get('method') != 'hello':
        sys.exit('footprint_create: no greeting')
    sent = first
    for done in range(first, end):
        if sent < end and sent - done < WINDOW // 2:
            batch = range(sent, min(end, done + WINDOW))
            s.sendall(b''.join(request(i) for i in batch))
            sent = batch.stop
        line = lines.readline()
        if b'"Created"' not in line:
            sys.exit(f'footprint_create: {line.decode(errors="replace").strip() or "the end"}')


main()
