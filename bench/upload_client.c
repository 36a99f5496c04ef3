// Sends bodies on keep-alive connections, each as fast as it is taken; what a server costs per
// request is then what bench/python_uploads.py reads from the kernel.
//
//   upload_client PORT PATH BODY_BYTES CONNECTIONS SECONDS
//
// Prints `requests N failed N reconnects N`. A response that announces the connection's end is
// followed by a new connection, once the whole body was sent: every server is to take the same
// bytes. Bytes are sent from one buffer, in steps of 256 KiB at most.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STEP (256 << 10)
#define CONNECTIONS_MAX 4096
#define RESPONSE_MAX 1024

struct peer {
    int fd;
    long sent;  // of head and body together
    int got, broken;
    char response[RESPONSE_MAX + 1];
};

static struct sockaddr_in address;
static struct peer peers[CONNECTIONS_MAX];
static char head[512], *body;
static long head_bytes, body_bytes, requests, failed, reconnects;
static int queue;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void open_peer(struct peer *peer) {
    int one = 1;
    peer->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(peer->fd, (void *)&address, sizeof address)) { perror("connect"); exit(1); }
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    peer->sent = peer->got = peer->broken = 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = peer};
    epoll_ctl(queue, EPOLL_CTL_ADD, peer->fd, &event);
}

static void reopen(struct peer *peer) {
    close(peer->fd);
    reconnects++;
    open_peer(peer);
}

static void send_more(struct peer *peer) {
    while (peer->sent < head_bytes + body_bytes) {
        long at = peer->sent - head_bytes, left = body_bytes - at;
        ssize_t sent;
        if (at < 0) {
            struct iovec parts[2] = {{head + peer->sent, -at},
                                     {body, body_bytes < STEP ? body_bytes : STEP}};
            struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
            sent = sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        } else {
            sent = send(peer->fd, body, left < STEP ? left : STEP, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        if (sent < 0) {
            peer->broken = errno != EAGAIN;
            return;
        }
        peer->sent += sent;
    }
}

// Returns whether the next request can be sent; counts and forgets the last one.
static int receive(struct peer *peer) {
    ssize_t got =
        recv(peer->fd, peer->response + peer->got, RESPONSE_MAX - peer->got, MSG_DONTWAIT);
    char *end = NULL, *length = NULL;
    if (got > 0) peer->got += got;
    peer->response[peer->got] = 0;
    end = strstr(peer->response, "\r\n\r\n");
    length = strcasestr(peer->response, "content-length:");
    int complete = end && length && peer->got >= end + 4 - peer->response + atol(length + 15);
    int sent = peer->sent == head_bytes + body_bytes;
    if (!complete || !sent) {
        // The peer's end is no fault while it still takes what it has responded to already.
        int lost = (got < 0 && errno != EAGAIN) || (got == 0 && !complete);
        if (lost || peer->broken) {
            failed++;
            reopen(peer);
        }
        return 0;
    }
    strncmp(peer->response + 9, "200", 3) ? failed++ : requests++;
    char *closes = strcasestr(peer->response, "connection: close");
    if (closes && closes < end) {
        reopen(peer);
    } else {
        peer->sent = peer->got = 0;
    }
    return 1;
}

int main(int count, char **words) {
    if (count < 6) return 2;
    body_bytes = atol(words[3]);
    int connections = atoi(words[4]);
    double until = now() + atof(words[5]);
    head_bytes = snprintf(head, sizeof head,
                          "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                          "application/octet-stream\r\nContent-Length: %ld\r\n\r\n",
                          words[2], body_bytes);
    body = calloc(1, STEP);
    memset(body, 'x', STEP);
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(words[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    queue = epoll_create1(0);
    for (int at = 0; at < connections; at++) open_peer(&peers[at]);
    struct epoll_event events[256];
    while (now() < until) {
        int found = epoll_wait(queue, events, 256, 100);
        for (int at = 0; at < found; at++) {
            struct peer *peer = events[at].data.ptr;
            do send_more(peer);
            while (receive(peer));
        }
    }
    printf("requests %ld failed %ld reconnects %ld\n", requests, failed, reconnects);
    return 0;
}
