// Half handshakes: connects, sends a ClientHello, and goes away when the first bytes of the answer
// come. At most so many each second, and so many at a time. Loopback only.
//
//     half_handshakes PORT FILE RATE SECONDS
//
// FILE: the hello. Prints how many were begun and answered.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PLACES 2000

static char hello[16384];
static size_t hello_bytes;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int begin(int epoll, in_port_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) return 0;
    // Its end is a reset, so that no port is left waiting.
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = port,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    connect(fd, (struct sockaddr *)&to, sizeof to);
    struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    return 1;
}

int main(int count, char **words) {
    if (count != 5) return fprintf(stderr, "expected PORT FILE RATE SECONDS\n"), 2;
    in_port_t port = htons((in_port_t)atoi(words[1]));
    FILE *file = fopen(words[2], "rb");
    if (!file) return perror(words[2]), 1;
    hello_bytes = fread(hello, 1, sizeof hello, file);
    double rate = atof(words[3]), begun_at = now(), until = begun_at + atof(words[4]);
    int epoll = epoll_create1(0), open = 0;
    long begun = 0, answered = 0;
    struct epoll_event events[256];
    while (now() < until) {
        while (open < PLACES && (double)begun < rate * (now() - begun_at)) {
            if (!begin(epoll, port)) break;
            begun += 1;
            open += 1;
        }
        int ready = epoll_wait(epoll, events, 256, 1);
        for (int at = 0; at < ready; at += 1) {
            int fd = events[at].data.fd;
            if (events[at].events & EPOLLOUT && !(events[at].events & (EPOLLERR | EPOLLHUP))) {
                send(fd, hello, hello_bytes, MSG_NOSIGNAL);
                struct epoll_event next = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};
                epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &next);
                continue;
            }
            char answer[64];
            answered += recv(fd, answer, sizeof answer, 0) > 0;
            close(fd);
            open -= 1;
        }
    }
    printf("%ld %ld\n", begun, answered);
    return 0;
}
