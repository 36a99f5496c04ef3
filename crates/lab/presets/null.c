/* null.c - the physical limit: a server that parses nothing.
 *
 *   null-epoll PORT BODY [close]   epoll, level-triggered, one thread
 *   null-uring PORT BODY [close]   built with -DURING: io_uring, multishot accept and recv
 *                                  into a provided-buffer ring, deferred task work
 *
 * BODY is a number of bytes, which are all x, or the path of a file, which is read once.
 * For each recv that holds N requests (N times CR LF CR LF), N canned 200 responses leave in one
 * send.
 * "close" responds with `Connection: close` and closes after the first response. Any other word
 * there means nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static char *canned;              /* `copies` responses back to back */
static size_t rlen, copies;
static int closing;

static void prepare(const char *what) {
    char h[256];
    FILE *file = strchr(what, '/') ? fopen(what, "r") : NULL;
    size_t body = strtoul(what, NULL, 10);
    if (strchr(what, '/')) {
        if (!file || fseek(file, 0, SEEK_END)) { perror(what); exit(1); }
        body = ftell(file);
    }
    int hl = snprintf(h, sizeof h,
                      "HTTP/1.1 200 OK\r\nServer: null\r\nConnection: %s\r\n"
                      "Content-Type: text/plain\r\nContent-Length: %zu\r\n\r\n",
                      closing ? "close" : "keep-alive", body);
    rlen = hl + body;
    copies = rlen > 8192 ? 1 : 64;
    canned = malloc(rlen * copies);
    for (size_t i = 0; i < copies; i++) {
        memcpy(canned + i * rlen, h, hl);
        if (file) {
            rewind(file);
            if (fread(canned + i * rlen + hl, 1, body, file) != body) { perror(what); exit(1); }
        } else {
            memset(canned + i * rlen + hl, 'x', body);
        }
    }
    if (file) fclose(file);
}

/* Count CRLFCRLF; *st carries the match state (0..3 bytes matched) across reads. */
static unsigned count(const char *p, size_t n, unsigned char *st) {
    unsigned c = 0, s = *st;
    for (size_t i = 0; i < n;) {
        if (s == 0) {             /* skip to the next CR quickly */
            const char *q = memchr(p + i, '\r', n - i);
            if (!q) break;
            i = q - p;
        }
        char ch = p[i++];
        if (ch == ((s & 1) ? '\n' : '\r')) { if (++s == 4) { c++; s = 0; } }
        else s = ch == '\r';
    }
    *st = s;
    return c;
}

static int listener(int port, int flags) {
    int s = socket(AF_INET, SOCK_STREAM | flags, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);   /* inherited by accepted sockets */
    if (bind(s, (void *)&a, sizeof a) || listen(s, 4096)) {
        perror("bind/listen");
        exit(1);
    }
    return s;
}

struct conn {
    size_t pend;                  /* bytes still to send */
    size_t off;                   /* where in one answer the next byte is */
    unsigned char st, live;
};
static struct conn *conns;        /* indexed by descriptor, touched lazily */
static size_t maxfd;

static void table(void) {
    struct rlimit r;
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
    maxfd = r.rlim_cur;
    conns = calloc(maxfd, sizeof *conns);
}

#ifndef URING
#include <sys/epoll.h>

static void flush(int ep, int fd, struct conn *c, int was) {
    while (c->pend) {
        size_t n = rlen * copies - c->off;
        if (n > c->pend) n = c->pend;
        ssize_t w = send(fd, canned + c->off, n, MSG_NOSIGNAL);
        if (w < 0) {
            if (errno != EAGAIN) { close(fd); return; }
            if (!was) {
                struct epoll_event e = {EPOLLOUT, {.fd = fd}};
                epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e);
            }
            return;
        }
        c->pend -= w;
        c->off = (c->off + w) % rlen;
    }
    if (closing) { close(fd); return; }
    if (was) {
        struct epoll_event e = {EPOLLIN, {.fd = fd}};
        epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    static char buf[65536];
    static struct epoll_event ev[1024];
    closing = argc > 3 && !strcmp(argv[3], "close");
    prepare(argv[2]);
    table();
    int ls = listener(atoi(argv[1]), SOCK_NONBLOCK), ep = epoll_create1(0);
    struct epoll_event e = {EPOLLIN, {.fd = ls}};
    epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
    for (;;) {
        int n = epoll_wait(ep, ev, 1024, -1);
        for (int i = 0; i < n; i++) {
            int fd = ev[i].data.fd;
            if (fd == ls) {
                for (int k = 0; k < 512; k++) {
                    int c = accept4(ls, 0, 0, SOCK_NONBLOCK);
                    if (c < 0) break;
                    conns[c] = (struct conn){0};
                    struct epoll_event ce = {EPOLLIN, {.fd = c}};
                    epoll_ctl(ep, EPOLL_CTL_ADD, c, &ce);
                }
                continue;
            }
            struct conn *c = &conns[fd];
            if (c->pend) { flush(ep, fd, c, 1); continue; }
            ssize_t r = recv(fd, buf, sizeof buf, 0);
            if (r <= 0) { if (r == 0 || errno != EAGAIN) close(fd); continue; }
            c->pend = rlen * count(buf, r, &c->st);
            if (c->pend) flush(ep, fd, c, 0);
        }
    }
}

#else
#include <liburing.h>

#define NBUF 4096                 /* power of two */
#define BUFSZ 4096
enum { ACCEPT, RECV, SEND, CLOSE };
static struct io_uring ring;
static struct io_uring_buf_ring *br;
static char *bufs;

static struct io_uring_sqe *sqe(void) {
    struct io_uring_sqe *s = io_uring_get_sqe(&ring);
    while (!s) { io_uring_submit(&ring); s = io_uring_get_sqe(&ring); }
    return s;
}
#define TAG(s, op, fd) io_uring_sqe_set_data64(s, (uint64_t)(op) << 32 | (unsigned)(fd))

static void arm_recv(int fd) {
    struct io_uring_sqe *s = sqe();
    io_uring_prep_recv_multishot(s, fd, NULL, 0, 0);
    s->flags |= IOSQE_BUFFER_SELECT;
    s->buf_group = 0;
    TAG(s, RECV, fd);
}
static void do_send(int fd) {
    struct conn *c = &conns[fd];
    size_t n = rlen * copies - c->off;
    if (n > c->pend) n = c->pend;
    struct io_uring_sqe *s = sqe();
    io_uring_prep_send(s, fd, canned + c->off, n, MSG_NOSIGNAL | MSG_WAITALL);
    TAG(s, SEND, fd);
}
/* Shutdown ends the multishot recv, whose last completion closes. */
static void do_close(int fd) {
    struct io_uring_sqe *s = sqe();
    io_uring_prep_shutdown(s, fd, SHUT_RDWR);
    TAG(s, CLOSE, fd);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    closing = argc > 3 && !strcmp(argv[3], "close");
    prepare(argv[2]);
    table();
    struct io_uring_params p = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        .cq_entries = 32768,
    };
    int r = io_uring_queue_init_params(4096, &ring, &p);
    if (r) { fprintf(stderr, "io_uring: %s\n", strerror(-r)); return 1; }
    if (posix_memalign((void **)&br, 4096, NBUF * sizeof(struct io_uring_buf))) return 1;
    bufs = malloc((size_t)NBUF * BUFSZ);
    struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)br, .ring_entries = NBUF, .bgid = 0};
    if ((r = io_uring_register_buf_ring(&ring, &reg, 0))) {
        fprintf(stderr, "buf_ring: %s\n", strerror(-r));
        return 1;
    }
    io_uring_buf_ring_init(br);
    for (int i = 0; i < NBUF; i++)
        io_uring_buf_ring_add(br, bufs + (size_t)i * BUFSZ, BUFSZ, i, NBUF - 1, i);
    io_uring_buf_ring_advance(br, NBUF);
    int ls = listener(atoi(argv[1]), 0);
    struct io_uring_sqe *s = sqe();
    io_uring_prep_multishot_accept(s, ls, NULL, NULL, 0);
    TAG(s, ACCEPT, ls);
    for (;;) {
        io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe *cq;
        unsigned head, seen = 0, back = 0;
        io_uring_for_each_cqe(&ring, head, cq) {
            seen++;
            int op = cq->user_data >> 32, fd = (int)cq->user_data, res = cq->res;
            int more = cq->flags & IORING_CQE_F_MORE;
            if (op == ACCEPT) {
                if (res >= 0) { conns[res] = (struct conn){.live = 1}; arm_recv(res); }
                if (!more) {
                    s = sqe();
                    io_uring_prep_multishot_accept(s, ls, NULL, NULL, 0);
                    TAG(s, ACCEPT, ls);
                }
            } else if (op == RECV) {
                struct conn *c = &conns[fd];
                if (cq->flags & IORING_CQE_F_BUFFER) {
                    int b = cq->flags >> IORING_CQE_BUFFER_SHIFT;
                    char *q = bufs + (size_t)b * BUFSZ;
                    size_t add = res > 0 ? rlen * count(q, res, &c->st) : 0;
                    io_uring_buf_ring_add(br, q, BUFSZ, b, NBUF - 1, back++);
                    if (add) { size_t was = c->pend; c->pend += add; if (!was) do_send(fd); }
                }
                if (!more) {
                    if (res > 0 || res == -ENOBUFS) arm_recv(fd);
                    else { c->live = 0; close(fd); }
                }
            } else if (op == SEND) {
                struct conn *c = &conns[fd];
                if (res <= 0) { c->pend = 0; if (c->live) do_close(fd); }
                else {
                    c->pend -= (size_t)res > c->pend ? c->pend : (size_t)res;
                    c->off = (c->off + res) % rlen;
                    if (c->pend) do_send(fd);
                    else if (closing) do_close(fd);
                }
            }
        }
        io_uring_cq_advance(&ring, seen);
        if (back) io_uring_buf_ring_advance(br, back);
    }
}
#endif
