/* websocket_echo.c - N WebSockets on one epoll: each sends a message and waits for it to come back.
 *
 *   websocket PORT PATH N BYTES SECONDS      (SECONDS 0: one message each, then held)
 *
 * Prints "READY opened" once all are open and have their first message back, then "DONE messages"
 * after SECONDS, or upon a line of standard input where SECONDS is 0.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Below half of the ephemeral ports for each source address. */
#define EACH 12000
static unsigned char frame[1 << 17];
static size_t frame_len, answer_len;
static size_t *have;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void make_frame(size_t bytes) {       /* masked, with a mask of zeros: payload as it is */
    unsigned char *at = frame;
    *at++ = 0x82;
    if (bytes < 126) *at++ = 0x80 | bytes;
    else { *at++ = 0x80 | 126; *at++ = bytes >> 8; *at++ = bytes; }
    memset(at, 0, 4);
    memset(at + 4, 'x', bytes);
    frame_len = at + 4 + bytes - frame;
    answer_len = frame_len - 4;
}

static int opened(int port, const char *path, int number) {
    struct sockaddr_in me = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[1024];
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    size_t got = 0;
    me.sin_addr.s_addr = htonl(0x7f00000a + number / EACH);
    to.sin_port = htons(port);
    setsockopt(s, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(s, (void *)&me, sizeof me) || connect(s, (void *)&to, sizeof to)) return -1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int n = snprintf(text, sizeof text,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        path, port);
    if (send(s, text, n, 0) != n) return -1;
    do {
        ssize_t r = recv(s, text + got, sizeof text - 1 - got, 0);
        if (r <= 0) return -1;
        text[got += r] = 0;
    } while (!strstr(text, "\r\n\r\n"));
    return strncmp(text, "HTTP/1.1 101", 12) ? -1 : s;
}

static void ask(int s) {
    if (send(s, frame, frame_len, 0) != (ssize_t)frame_len) { perror("send"); exit(1); }
}

/* Reads what has come. Returns whether a message is whole. */
static int take(int s) {
    static char came[1 << 17];
    ssize_t r = recv(s, came, answer_len - have[s], 0);
    if (r <= 0) { fprintf(stderr, "a WebSocket has ended\n"); exit(1); }
    if ((have[s] += r) < answer_len) return 0;
    have[s] = 0;
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 6) return fprintf(stderr, "websocket PORT PATH N BYTES SECONDS\n"), 2;
    int port = atoi(argv[1]), n = atoi(argv[3]);
    double seconds = atof(argv[5]), until;
    long messages = 0;
    int poll = epoll_create1(0);
    static struct epoll_event events[512];
    have = calloc(1 << 20, sizeof *have);
    make_frame(atoi(argv[4]));
    for (int i = 0; i < n; i++) {
        int s = opened(port, argv[2], i);
        if (s < 0) return fprintf(stderr, "WebSocket %d was not opened\n", i), 1;
        ask(s);
        while (!take(s)) {}
        struct epoll_event event = {.events = EPOLLIN, .data.fd = s};
        epoll_ctl(poll, EPOLL_CTL_ADD, s, &event);
        if (seconds > 0) ask(s);
    }
    printf("READY %d\n", n);
    fflush(stdout);
    if (seconds == 0) {
        getchar();
        return printf("DONE 0\n"), 0;
    }
    for (until = now() + seconds; now() < until;) {
        int ready = epoll_wait(poll, events, 512, 100);
        for (int i = 0; i < ready; i++)
            if (take(events[i].data.fd)) { messages++; ask(events[i].data.fd); }
    }
    printf("DONE %ld\n", messages);
    return 0;
}
