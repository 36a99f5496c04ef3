/* idle.c - holds N idle keep-alive connections that made one request each, then asks among them.
 *
 *   idle PORT PATH N PROBES
 *
 * Prints "READY opened failed seconds" once all are open. On the next line of standard input it
 * makes PROBES requests, one at a time, over connections picked at random, and prints
 * "PROBE ok p50_us p99_us max_us". It exits on the line after that, or on end of file.
 *
 * The connections are shared out over child processes, EACH per process, and every process has its
 * own source address 127.0.0.(10 + k), so that neither descriptors nor ports run out.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Below the usual descriptor limit, and below half of the ephemeral ports: connect() searches the
 * ports of one parity first and gets slow when they are used up. */
#define EACH 12000
static char req[512], buf[65536];
static int rl, fds[EACH], nfd, fails, port;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int ask(int fd) {          /* one request, whole response read; 0 = good */
    if (send(fd, req, rl, MSG_NOSIGNAL) != rl) return -1;
    size_t have = 0, want = 0;
    do {
        ssize_t r = recv(fd, buf + have, sizeof buf - 1 - have, 0);
        if (r <= 0) return -1;
        have += r;
        buf[have] = 0;
        char *e = strstr(buf, "\r\n\r\n"), *l = strcasestr(buf, "content-length:");
        if (e && l && l < e) want = e + 4 - buf + atol(l + 15);
    } while (!want || have < want);
    return strncmp(buf, "HTTP/1.1 200", 12) ? -1 : 0;
}

static void fill(int k, int n) {
    struct sockaddr_in me = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f00000a + k)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons(port);
    struct timeval tv = {5, 0};
    int one = 1;
    while (nfd < n && fails < 100) {
        int s = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(s, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (s < 0 || bind(s, (void *)&me, sizeof me) ||
            connect(s, (void *)&to, sizeof to) || ask(s)) {
            fails++;
            close(s);
            continue;
        }
        fds[nfd++] = s;
    }
}

static int cmp(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int c, char **v) {
    if (c < 5) return 2;
    port = atoi(v[1]);
    rl = snprintf(req, sizeof req, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", v[2]);
    int n = atoi(v[3]), probes = atoi(v[4]), kids = (n - 1) / EACH;
    int p[2], got[2], opened, failed;
    double t0 = now();
    if (pipe(p)) return 1;
    for (int k = 1; k <= kids; k++) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            fill(k, k < kids ? EACH : n - kids * EACH);   /* the last one holds the rest */
            got[0] = nfd; got[1] = fails;
            if (write(p[1], got, sizeof got) < 0) _exit(1);
            for (;;) pause();
        }
    }
    fill(0, kids ? EACH : n);
    opened = nfd; failed = fails;
    for (int k = 0; k < kids; k++) {
        if (read(p[0], got, sizeof got) != sizeof got) break;
        opened += got[0];
        failed += got[1];
    }
    printf("READY %d %d %.2f\n", opened, failed, now() - t0);
    fflush(stdout);
    char line[64];
    if (!fgets(line, sizeof line, stdin) || !nfd) return 0;
    double *lat = malloc(sizeof *lat * probes);
    int ok = 0;
    srandom(1);
    for (int i = 0; i < probes; i++) {
        double a = now();
        if (ask(fds[random() % nfd]) == 0) lat[ok++] = (now() - a) * 1e6;
    }
    qsort(lat, ok, sizeof *lat, cmp);
    if (ok) printf("PROBE %d %.1f %.1f %.1f\n", ok, lat[ok / 2], lat[(int)(ok * .99)], lat[ok - 1]);
    else printf("PROBE 0 0 0 0\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) {}
    return 0;                     /* children die with us */
}
