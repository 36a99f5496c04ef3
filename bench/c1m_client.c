/* c1m_client.c - holds a million connections from one process, against one server.
 *
 *   c1m_client PORT PATH N SECONDS
 *
 * Descriptors are scarce (a process may often have no more than some 20,000), so the connections
 * live in the tables of io_uring rings: one thread, one ring and one table of PER_RING entries
 * each. Ports are scarce too, so every ring uses two source addresses 127.1.x.y. Each connection
 * makes one request and its answer is checked: the status says 200, and the body is complete.
 *
 * Standard output: "OPEN opened failed seconds" every 5 s, then "READY opened failed seconds". Then
 * lines of standard input are obeyed:
 *   sweep K   asks again on every K-th connection held: "SWEEP asked ok failed seconds"
 *   quit      closes all (as end of file does): "BYE seconds"
 * SECONDS bounds the whole life of the process: after that it says so and exits with status 3.
 *
 * Build: cc -O2 -o c1m_client c1m_client.c -luring -lpthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PER_RING 18000            /* 2 addresses x 9,000 ports: under half of the ephemeral ports */
#define WINDOW 24                 /* connections being opened at once on each ring */
#define ANSWER_BYTES_MAX 4096
#define STEP_SECONDS_MAX 15       /* connect, send and answer of one connection, together */
#define FAILED_PER_RING_MAX 1000  /* then the ring gives up */

enum { CONNECT, SEND, RECV, CANCEL };

struct slot {                     /* one connection being worked on */
    int index;                    /* where it lives in the ring's table; -1: the slot is free */
    int pending;                  /* completions still to come */
    int bad, cancelled;
    size_t have;
    double began;
    char answer[ANSWER_BYTES_MAX + 1];
};

struct worker {
    pthread_t thread;
    int id, target;
    struct io_uring ring;
    struct slot *slots;
    unsigned char *held;          /* which entries of the table hold an open connection */
    struct sockaddr_in server;
    atomic_int opened, failed, asked, answered;
    int began;                    /* connections begun so far */
    int setup_error;
};

static char request[512];
static size_t request_bytes;
static int port;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int phase, every, finished; /* phase counts the orders given; every = 0 means quit */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* 1: a whole answer with status 200; 0: need more; -1: not that. */
static int judge(struct slot *s) {
    s->answer[s->have] = 0;
    char *end = strstr(s->answer, "\r\n\r\n");
    if (!end) return s->have < ANSWER_BYTES_MAX ? 0 : -1;
    if (strncmp(s->answer, "HTTP/1.1 200 ", 13)) return -1;
    char *length = strcasestr(s->answer, "\r\ncontent-length:");
    if (!length || length > end) return -1;
    size_t want = (size_t)(end + 4 - s->answer) + strtoul(length + 17, NULL, 10);
    if (want > ANSWER_BYTES_MAX || s->have > want) return -1;
    return s->have == want;
}

static struct io_uring_sqe *entry(struct worker *w) {
    struct io_uring_sqe *e = io_uring_get_sqe(&w->ring);
    while (!e) {
        io_uring_submit(&w->ring);
        e = io_uring_get_sqe(&w->ring);
    }
    return e;
}

static void tag(struct worker *w, struct io_uring_sqe *e, struct slot *s, int op, unsigned flags) {
    io_uring_sqe_set_flags(e, IOSQE_FIXED_FILE | flags);
    io_uring_sqe_set_data64(e, (__u64)(s - w->slots) << 8 | (unsigned)op);
    s->pending++;
}

static void receive(struct worker *w, struct slot *s) {
    struct io_uring_sqe *e = entry(w);
    io_uring_prep_recv(e, s->index, s->answer + s->have, ANSWER_BYTES_MAX - s->have, 0);
    tag(w, e, s, RECV, 0);
}

/* Sends the request and reads its answer; `first` connects before. The three are one chain. */
static void ask(struct worker *w, struct slot *s, int first) {
    if (io_uring_sq_space_left(&w->ring) < 3) io_uring_submit(&w->ring); /* never split a chain */
    s->have = 0;
    s->bad = s->cancelled = 0;
    s->began = now();
    struct io_uring_sqe *e;
    if (first) {
        e = entry(w);
        io_uring_prep_connect(e, s->index, (struct sockaddr *)&w->server, sizeof w->server);
        tag(w, e, s, CONNECT, IOSQE_IO_LINK);
    }
    e = entry(w);
    io_uring_prep_send(e, s->index, request, request_bytes, MSG_NOSIGNAL | MSG_WAITALL);
    tag(w, e, s, SEND, IOSQE_IO_LINK);
    receive(w, s);
}

static void forget(struct worker *w, int index) {
    int none = -1;
    io_uring_register_files_update(&w->ring, (unsigned)index, &none, 1);
    w->held[index] = 0;
}

/* Makes a socket bound to this ring's address and puts it into the table; keeps no descriptor. */
static int place(struct worker *w, int index) {
    struct sockaddr_in me = {.sin_family = AF_INET};
    me.sin_addr.s_addr = htonl(0x7f010001u + (unsigned)w->id * 2 + (index >= PER_RING / 2));
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int placed = bind(fd, (void *)&me, sizeof me) == 0 &&
                 io_uring_register_files_update(&w->ring, (unsigned)index, &fd, 1) == 1;
    close(fd);
    return placed ? 0 : -1;
}

/* Cancels what takes longer than STEP_SECONDS_MAX: one lost answer cannot hold up the rest. */
static void expire(struct worker *w) {
    double t = now();
    for (int i = 0; i < WINDOW; i++) {
        struct slot *s = &w->slots[i];
        if (s->index < 0 || s->cancelled || t - s->began < STEP_SECONDS_MAX) continue;
        s->cancelled = s->bad = 1;
        for (unsigned op = CONNECT; op <= RECV; op++) {
            struct io_uring_sqe *e = entry(w);
            io_uring_prep_cancel64(e, (__u64)i << 8 | op, 0);
            io_uring_sqe_set_data64(e, CANCEL);
        }
    }
}

/* Reaps completions; `done` hears of each slot whose chain has ended. */
static void turn(struct worker *w, void (*done)(struct worker *, struct slot *)) {
    struct __kernel_timespec second = {.tv_sec = 1};
    struct io_uring_cqe *c, *batch[WINDOW * 4];
    io_uring_submit_and_wait_timeout(&w->ring, &c, 1, &second, NULL);
    unsigned n = io_uring_peek_batch_cqe(&w->ring, batch, WINDOW * 4);
    if (!n) expire(w);
    for (unsigned i = 0; i < n; i++) {
        int op = (int)(batch[i]->user_data & 0xff), res = batch[i]->res;
        struct slot *s = &w->slots[batch[i]->user_data >> 8];
        if (op == CANCEL) continue;
        s->pending--;
        if (op == CONNECT && res < 0) s->bad = 1;
        if (op == SEND && res != (int)request_bytes) s->bad = 1;
        if (op == RECV && res <= 0) s->bad = 1;
        if (op == RECV && res > 0) {
            s->have += (size_t)res;
            int verdict = judge(s);
            if (verdict < 0) s->bad = 1;
            if (verdict == 0 && !s->bad) receive(w, s);
        }
        if (!s->pending) done(w, s);
    }
    io_uring_cq_advance(&w->ring, n);
}

static void open_done(struct worker *w, struct slot *s) {
    if (s->bad) {
        forget(w, s->index);
        w->failed++;
    } else {
        w->held[s->index] = 1;
        w->opened++;
    }
    s->index = -1;
}

static void sweep_done(struct worker *w, struct slot *s) {
    if (s->bad) forget(w, s->index);
    else w->answered++;
    s->index = -1;
}

static void open_all(struct worker *w) {
    int busy = 1;
    while (busy) {
        busy = 0;
        int more = w->began < w->target && w->failed < FAILED_PER_RING_MAX;
        for (int i = 0; i < WINDOW; i++) {
            struct slot *s = &w->slots[i];
            if (s->index < 0 && more && w->began < w->target) {
                if (place(w, w->began)) {
                    w->began++;
                    w->failed++;
                } else {
                    s->index = w->began++;
                    ask(w, s, 1);
                }
            }
            busy |= s->index >= 0;
        }
        if (busy) turn(w, open_done);
        else busy = w->began < w->target && w->failed < FAILED_PER_RING_MAX;
    }
    w->failed += w->target - w->began; /* those it gave up */
}

static void sweep(struct worker *w) {
    int at = 0, busy = 1;
    w->asked = w->answered = 0;
    while (busy) {
        busy = 0;
        for (int i = 0; i < WINDOW; i++) {
            struct slot *s = &w->slots[i];
            while (s->index < 0 && at < w->target) {
                int index = at;
                at += every;
                if (!w->held[index]) continue;
                s->index = index;
                w->asked++;
                ask(w, s, 0);
            }
            busy |= s->index >= 0;
        }
        if (busy) turn(w, sweep_done);
    }
}

static void close_all(struct worker *w) {
    int none[512];
    memset(none, -1, sizeof none);
    for (int at = 0; at < w->target; at += 512) {
        int n = w->target - at < 512 ? w->target - at : 512;
        io_uring_register_files_update(&w->ring, (unsigned)at, none, (unsigned)n);
    }
    io_uring_queue_exit(&w->ring);
}

static int set_up(struct worker *w) {
    struct io_uring_params p = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        .cq_entries = 1024,
    };
    int r = io_uring_queue_init_params(256, &w->ring, &p);
    if (!r) r = io_uring_register_files_sparse(&w->ring, (unsigned)w->target);
    w->slots = calloc(WINDOW, sizeof *w->slots);
    w->held = calloc((size_t)w->target, 1);
    for (int i = 0; i < WINDOW; i++) w->slots[i].index = -1;
    w->server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    w->server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return r;
}

static void report_finished(void) {
    pthread_mutex_lock(&lock);
    finished++;
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&lock);
}

static void *life(void *argument) {
    struct worker *w = argument;
    w->setup_error = set_up(w);
    if (w->setup_error) w->failed = w->target;
    else open_all(w);
    report_finished();
    for (int seen = 0;;) {
        pthread_mutex_lock(&lock);
        while (phase == seen) pthread_cond_wait(&turned, &lock);
        seen = phase;
        int order = every;
        pthread_mutex_unlock(&lock);
        if (!order) break;
        if (!w->setup_error) sweep(w);
        report_finished();
    }
    if (!w->setup_error) close_all(w);
    report_finished();
    return NULL;
}

/* Waits until every thread has finished the phase; says how far it is every 5 seconds. */
static void await_all(struct worker *w, int count, double began, int progress) {
    pthread_mutex_lock(&lock);
    while (finished < count) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 5;
        if (pthread_cond_timedwait(&turned, &lock, &until) != ETIMEDOUT || !progress) continue;
        int opened = 0, failed = 0;
        for (int i = 0; i < count; i++) opened += w[i].opened, failed += w[i].failed;
        printf("OPEN %d %d %.1f\n", opened, failed, now() - began);
        fflush(stdout);
    }
    finished = 0;
    pthread_mutex_unlock(&lock);
}

static void order(int step) {
    pthread_mutex_lock(&lock);
    every = step;
    phase++;
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&lock);
}

/* The only thread that does nothing but wait for the end: no lock is held when it comes. */
static void *bound(void *seconds) {
    sleep((unsigned)(size_t)seconds);
    fprintf(stderr, "c1m_client: not done within %zu seconds\n", (size_t)seconds);
    _exit(3);
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: c1m_client PORT PATH N SECONDS\n");
        return 2;
    }
    port = atoi(argv[1]);
    request_bytes = (size_t)snprintf(request, sizeof request,
                                     "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", argv[2]);
    int n = atoi(argv[3]), opened = 0, failed = 0;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    int each = PER_RING < (int)files.rlim_max - 200 ? PER_RING : (int)files.rlim_max - 200;
    int count = (n + each - 1) / each;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    pthread_t watch;
    pthread_create(&watch, &small, bound, (void *)(size_t)atoi(argv[4]));
    struct worker *w = calloc((size_t)count, sizeof *w);
    double began = now();
    for (int i = 0; i < count; i++) {
        w[i].id = i;
        w[i].target = n / count + (i < n % count);
        if (pthread_create(&w[i].thread, &small, life, &w[i])) return 1;
    }
    await_all(w, count, began, 1);
    for (int i = 0; i < count; i++) {
        opened += w[i].opened;
        failed += w[i].failed;
        if (w[i].setup_error) fprintf(stderr, "ring %d: %s\n", i, strerror(-w[i].setup_error));
    }
    printf("READY %d %d %.2f\n", opened, failed, now() - began);
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin) && strncmp(line, "quit", 4)) {
        int step = strncmp(line, "sweep ", 6) ? 0 : atoi(line + 6), asked = 0, ok = 0;
        if (step < 1) continue;
        double t = now();
        order(step);
        await_all(w, count, t, 0);
        for (int i = 0; i < count; i++) asked += w[i].asked, ok += w[i].answered;
        printf("SWEEP %d %d %d %.2f\n", asked, ok, asked - ok, now() - t);
        fflush(stdout);
    }
    double t = now();
    order(0);
    await_all(w, count, t, 0);
    printf("BYE %.2f\n", now() - t);
    return 0;
}
