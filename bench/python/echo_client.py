"""Sends 64 bytes to and fro on many connections: PORT CONNECTIONS SECONDS. Prints how often."""

import select
import socket
import sys
import time

port, count, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
poll, links, word = select.epoll(), {}, b"x" * 64
for _ in range(count):
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    links[link.fileno()] = link
    poll.register(link, select.EPOLLIN)
    link.sendall(word)
done, until = 0, time.monotonic() + seconds
while time.monotonic() < until:
    for number, _ in poll.poll(1):
        link = links[number]
        link.recv(4096)
        link.send(word)
        done += 1
print(done)
