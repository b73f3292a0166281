/*
 * The whole user space of a guest whose kernel's instructions are counted. A word of the kernel's command line says what happens; the
 * first process says "=== ready" on the console once that has gone on for a while, and it goes on until QEMU ends.
 *
 * `pingpong=CPUS,WARM`: two processes hand a byte to and fro through two pipes, as pipetest does. 1 binds both to CPU 0, 2 gives each a
 * CPU; and messages before "ready".
 * `talk=KIND,CPUS,WARM,BYTES`: two processes, or threads, on as many CPUs send messages of so many bytes over loopback or another way. tcp, udp, unix, futex:
 * to and fro, as tbench's clients and servers do; stream, datagrams: from the first to the second, by TCP and by UDP, as netperf does;
 * epoll: to and fro by TCP, and each waits in epoll_wait().
 * `mixture=HOGS,WARM`: so many processes spin, each in a session of its own, and so in an autogroup of its own where there are any.
 * Another one sleeps for a millisecond, forks and waits for its child by turns, which binds itself to a CPU and ends; and rounds before
 * "ready".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int bind_to(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    return sched_setaffinity(0, sizeof cpus, &cpus);
}

static _Noreturn void fail(const char *what) {
    printf("=== error %s\n", what);
    fflush(stdout);
    for (;;) pause();
}

static void ready(void) {
    printf("=== ready\n");
    fflush(stdout);
}

static _Noreturn void pingpong(int cpus, long warm) {
    int there[2], back[2];
    char byte = 'x';
    if (pipe(there) || pipe(back)) fail("pipe");
    if (bind_to(0)) fail("CPU 0");
    if (!fork()) {
        if (cpus == 2 && bind_to(1)) fail("CPU 1");
        while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {}
        fail("the other end");
    }
    for (long round = 0;; round++) {
        if (round == warm) ready();
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) fail("this end");
    }
}

/* Two connected sockets. */
static void connected(int type, int end[2]) {
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct sockaddr_in at[2];
    socklen_t size = sizeof at[0];
    if (ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo)) fail("loopback");
    for (int i = 0; i < 2; i++) {
        at[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        end[i] = socket(AF_INET, type, 0);
        if (end[i] < 0 || bind(end[i], (void *)&at[i], size) || getsockname(end[i], (void *)&at[i], &size)) fail("socket");
    }
    if (type == SOCK_STREAM) {
        int listening = end[1], yes = 1;
        if (listen(listening, 1) || connect(end[0], (void *)&at[1], size)) fail("connect");
        end[1] = accept(listening, NULL, NULL);
        if (end[1] < 0 || setsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes)) fail("accept");
        if (setsockopt(end[1], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes)) fail("TCP_NODELAY");
    } else if (connect(end[0], (void *)&at[1], size) || connect(end[1], (void *)&at[0], size)) {
        fail("connect");
    }
}

static int turn;
static long rounds_before;

/* One thread takes what the other has left, and leaves it for that one. */
static void *take_turns(void *cpu) {
    int who = cpu != NULL;
    if (who && bind_to(*(int *)cpu)) fail("the other thread's CPU");
    for (long round = 0;; round++) {
        if (who == 0 && round == rounds_before) ready();
        for (int now; (now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST)) != who;) {
            syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
        }
        __atomic_store_n(&turn, !who, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

static _Noreturn void futexes(int cpus, long warm) {
    pthread_t other;
    int cpu = cpus - 1;
    rounds_before = warm;
    if (pthread_create(&other, NULL, take_turns, &cpu)) fail("pthread_create");
    take_turns(NULL);
    fail("the other thread");
}

static void receive(int from, int by_read, int stream, char *message, long bytes) {
    for (long got = 0, more; got < bytes; got += more) {
        more = by_read ? read(from, message, bytes - got) : recv(from, message, bytes - got, 0);
        if (more <= 0) fail("receive");
        if (!stream) break;
    }
}

static _Noreturn void talk(const char *kind, int cpus, long warm, long bytes) {
    int one_way = !strcmp(kind, "stream") || !strcmp(kind, "datagrams"), unix_socket = !strcmp(kind, "unix");
    int stream = strcmp(kind, "udp") && strcmp(kind, "datagrams"), end[2];
    char *message = calloc(bytes, 1);
    if (!message) fail("memory");
    if (bind_to(0)) fail("CPU 0");
    if (!strcmp(kind, "futex")) futexes(cpus, warm);
    if (unix_socket) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, end)) fail("socketpair");
    } else {
        connected(stream ? SOCK_STREAM : SOCK_DGRAM, end);
    }
    int who = fork() ? 0 : 1, mine = end[who], epoll = epoll_create1(0);
    if (who && cpus == 2 && bind_to(1)) fail("CPU 1");
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, mine, &event)) fail("epoll_ctl");
    if (strcmp(kind, "epoll")) close(epoll);
    for (long round = 0;; round++) {
        if (who == 0 && round == warm) ready();
        if (who == 0 || !one_way) {
            /* The second one answers. */
            if (who == 1) {
                if (!strcmp(kind, "epoll") && epoll_wait(epoll, &event, 1, -1) != 1) fail("epoll_wait");
                receive(mine, unix_socket, stream, message, bytes);
            }
            if ((unix_socket ? write(mine, message, bytes) : send(mine, message, bytes, 0)) != bytes) fail("send");
        }
        if (one_way ? who == 1 : who == 0) {
            if (!strcmp(kind, "epoll") && epoll_wait(epoll, &event, 1, -1) != 1) fail("epoll_wait");
            receive(mine, unix_socket, stream, message, bytes);
        }
    }
}

static _Noreturn void mixture(int hogs, long warm) {
    struct timespec millisecond = {.tv_nsec = 1000000};
    for (int hog = 0; hog < hogs; hog++) {
        if (!fork()) {
            setsid();
            for (;;) __asm__ volatile("pause");
        }
    }
    for (long round = 0;; round++) {
        if (round == warm) ready();
        nanosleep(&millisecond, NULL);
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (!child) {
            bind_to(round & 1);
            _exit(0);
        }
        if (waitpid(child, NULL, 0) != child) fail("wait");
    }
}

int main(void) {
    char line[4096] = "";
    int count, file;
    long warm, bytes;
    char kind[16];
    mount("proc", "/proc", "proc", 0, NULL);
    file = open("/proc/cmdline", O_RDONLY);
    if (file < 0 || read(file, line, sizeof line - 1) < 0) fail("no command line");
    const char *word = strstr(line, "pingpong=");
    if (word && sscanf(word, "pingpong=%d,%ld", &count, &warm) == 2) pingpong(count, warm);
    word = strstr(line, "talk=");
    if (word && sscanf(word, "talk=%15[a-z],%d,%ld,%ld", kind, &count, &warm, &bytes) == 4) talk(kind, count, warm, bytes);
    word = strstr(line, "mixture=");
    if (word && sscanf(word, "mixture=%d,%ld", &count, &warm) == 2) mixture(count, warm);
    fail("no pingpong=, no talk= and no mixture=");
}
