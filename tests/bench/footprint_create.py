#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Creates Spots through the management socket, many requests under way at once.

    footprint_create.py SOCKET FROM TO

makes the counters with the numbers FROM up to TO (not included) as 36-byte ids, over several
connections, because control serves those in turn. Exit 1 when one of them was not created.
"""
import json
import selectors
import socket
import sys

CONNECTIONS = 32
WINDOW = 64  # requests under way on each


def request(i):
    return (json.dumps({'jsonrpc': '2.0', 'id': i, 'method': 'spot.get_or_create',
                        'params': {'id': f'{i:036d}', 'type': 'counter'}}) + '\n').encode()


class Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.rest = b''  # of a line
        self.under_way = 0
        if json.loads(self.lines()[0]).get('method') != 'hello':
            sys.exit('footprint_create: no greeting')

    def lines(self):
        """The lines that have come, at least one."""
        while True:
            data = self.socket.recv(1 << 16)
            if not data:
                sys.exit('footprint_create: control closed the connection')
            *lines, self.rest = (self.rest + data).split(b'\n')
            if lines:
                return lines

    def ask(self, numbers):
        batch = [request(i) for i in numbers]
        self.under_way += len(batch)
        self.socket.sendall(b''.join(batch))

    def take(self):
        for line in self.lines():
            if b'"Created"' not in line:
                sys.exit(f'footprint_create: {line.decode(errors="replace")}')
            self.under_way -= 1


def main():
    path, sent, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ready = selectors.DefaultSelector()
    for _ in range(CONNECTIONS):
        c = Connection(path)
        ready.register(c.socket, selectors.EVENT_READ, c)
    connections = [key.data for key in ready.get_map().values()]
    while sent < end or any(c.under_way for c in connections):
        for c in connections:
            upto = min(end, sent + WINDOW - c.under_way)
            if c.under_way <= WINDOW // 2 and upto > sent:
                c.ask(range(sent, upto))
                sent = upto
        for key, _ in ready.select():
            key.data.take()


main()
