/*
 * The whole user space of a guest that counts how often both ends of a TCP stream over loopback sleep and leave their CPU, both on
 * CPU 0: the figures of crates/cli/tests/levels.rs. It prints a line for each size of a message and each size of the buffers.
 *
 *     gcc -O2 -static -o init xtask/recorder/guest/streams.c
 *     echo init | cpio -o -H newc | gzip > streams.gz
 *     qemu-system-x86_64 -machine q35 -cpu max -m 512 -smp 1 -icount shift=0,sleep=off -nographic -no-reboot -kernel VMLINUZ \
 *         -initrd streams.gz -append "console=ttyS0 quiet mitigations=off panic=-1 tsc=reliable clocksource=tsc"
 *
 * With the argument "apart" on the kernel's command line the receiver is on CPU 1: with -smp 2 and -accel tcg,thread=multi, and without
 * -icount, on a computer that does nothing else. With "probe" the tracepoint tcp:tcp_probe of a first connection is printed as well.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What the sender tells at the end. */
struct counts {
    long messages, voluntary, involuntary;
};

static void require(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        sync();
        reboot(RB_POWER_OFF);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Whether the kernel's command line has a word. */
static int asked(const char *word)
{
    char line[4096] = { 0 };
    int file = open("/proc/cmdline", O_RDONLY);
    require(file >= 0 && read(file, line, sizeof line - 1) > 0, "/proc/cmdline");
    close(file);
    return strstr(line, word) != 0;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    require(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

static struct counts switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct counts) { 0, usage.ru_nvcsw, usage.ru_nivcsw };
}

static int stream_socket(int buffers)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    require(s >= 0, "socket");
    if (buffers) {
        setsockopt(s, SOL_SOCKET, SO_SNDBUF, &buffers, sizeof buffers);
        setsockopt(s, SOL_SOCKET, SO_RCVBUF, &buffers, sizeof buffers);
    }
    return s;
}

static void put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    require(file >= 0 && write(file, text, strlen(text)) > 0, path);
    close(file);
}

static void sender(struct sockaddr_in to, int buffers, int size, double seconds, int tell)
{
    pin(0);
    int s = stream_socket(buffers);
    require(!connect(s, (void *)&to, sizeof to), "connect");
    char *message = calloc(1, size);
    struct counts before = switches(), sent = { 0 };
    for (double since = now(); now() - since < seconds; sent.messages++)
        for (int done = 0; done < size;) {
            int wrote = write(s, message + done, size - done);
            require(wrote > 0, "write");
            done += wrote;
        }
    struct counts after = switches();
    sent.voluntary = after.voluntary - before.voluntary;
    sent.involuntary = after.involuntary - before.involuntary;
    require(write(tell, &sent, sizeof sent) == sizeof sent, "the counts");
    shutdown(s, SHUT_WR);
    _exit(0);
}

/* `buffers`: beyond the message's size; 0: the kernel's own. */
static void count(int size, int buffers, double seconds)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int each = buffers ? buffers + size : 0, listener = stream_socket(each), told[2];
    require(!bind(listener, (void *)&address, sizeof address) && !listen(listener, 1), "listen");
    getsockname(listener, (void *)&address, &length);
    require(!pipe(told), "pipe");
    if (!fork())
        sender(address, each, size, seconds, told[1]);
    int s = accept(listener, 0, 0), got;
    char *message = malloc(size);
    struct counts before = switches(), sent;
    while ((got = read(s, message, size)) > 0)
        ;
    struct counts after = switches();
    require(read(told[0], &sent, sizeof sent) == sizeof sent, "the counts");
    wait(0);
    double messages = sent.messages;
    printf("size %d buffers %d messages %ld, for each: sender sleeps %.5f leaves %.5f receiver sleeps %.5f leaves %.5f\n", size, buffers,
           sent.messages, sent.voluntary / messages, (sent.voluntary + sent.involuntary) / messages,
           (after.voluntary - before.voluntary) / messages,
           (after.voluntary - before.voluntary + after.involuntary - before.involuntary) / messages);
    free(message);
    close(s);
    close(listener);
    close(told[0]);
    close(told[1]);
}


int main(void)
{
    static const int sizes[] = { 64, 128, 256, 1024, 2048, 4096, 8192, 16384 };
    static const struct {
        int buffers;
        double seconds;
    } rounds[] = { { 256, 1 }, { 65536, 0.6 }, { 0, 1 } };
    mkdir("/proc", 0755);
    mount("proc", "/proc", "proc", 0, 0);
    setvbuf(stdout, 0, _IOLBF, 0);
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    require(!ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo), "lo");
    pin(asked(" apart"));
    if (asked(" probe")) {
        mkdir("/trace", 0755);
        require(!mount("tracefs", "/trace", "tracefs", 0, 0), "tracefs");
        put("/trace/events/tcp/tcp_probe/enable", "1");
        count(sizes[0], rounds[0].buffers, 0.4);
        put("/trace/events/tcp/tcp_probe/enable", "0");
        char line[1024];
        for (FILE *trace = fopen("/trace/trace", "r"); trace && fgets(line, sizeof line, trace);)
            fputs(line, stdout);
    }
    for (unsigned round = 0; round < sizeof rounds / sizeof *rounds; round++)
        for (unsigned at = 0; at < sizeof sizes / sizeof *sizes; at++)
            count(sizes[at], rounds[round].buffers, rounds[round].seconds);
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
}
