// The null server of uploads: it parses no more than where a head ends and how long its body is,
// reads the body, and sends seven bytes. What it costs is what the kernel costs.
//
//   upload_null PORT READ_BYTES           reads into one buffer of READ_BYTES
//   upload_null PORT READ_BYTES discard   takes as many bytes at a time with MSG_TRUNC, uncopied
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES 4096
#define READS_MAX 4  // of one connection, before others have their turn
#define DESCRIPTORS_MAX 65536

static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n2097152";
static char *room;
static size_t room_bytes;
static long left[DESCRIPTORS_MAX];  // of the body that a connection is sending
static int queue, flags, one = 1;

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event);
}

static void accept_all(int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        left[fd] = 0;
        watch(fd);
    }
}

// Reads some of a body, or a head. Returns whether to read on.
static int read_some(int fd) {
    int in_body = left[fd] > 0;
    size_t most = in_body ? room_bytes : HEAD_BYTES;
    if (in_body && left[fd] < (long)most) most = left[fd];
    ssize_t got = recv(fd, room, most, in_body ? flags : 0);
    if (got < 0) return 0;
    char *end = in_body || !got ? NULL : memmem(room, got, "\r\n\r\n", 4);
    if (!got || (!in_body && !end)) {
        close(fd);
        return 0;
    }
    if (in_body) {
        left[fd] -= got;
    } else {
        room[got < HEAD_BYTES ? got : HEAD_BYTES - 1] = 0;
        char *length = strcasestr(room, "content-length:");
        left[fd] = (length && length < end ? atol(length + 15) : 0) - (got - (end + 4 - room));
    }
    if (left[fd] == 0) send(fd, response, sizeof response - 1, MSG_NOSIGNAL);
    return 1;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    room_bytes = atol(words[2]);
    flags = count > 3 ? MSG_TRUNC : 0;
    room = malloc(room_bytes > HEAD_BYTES ? room_bytes : HEAD_BYTES);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096)) return 1;
    queue = epoll_create1(0);
    watch(listener);
    struct epoll_event events[256];
    for (;;) {
        int found = epoll_wait(queue, events, 256, -1);
        for (int at = 0; at < found; at++) {
            int fd = events[at].data.fd;
            if (fd == listener) {
                accept_all(listener);
                continue;
            }
            for (int reads = 0; reads < READS_MAX && read_some(fd); reads++) {}
        }
    }
}
