/*
 * The whole user space of a guest whose kernel's instructions are counted: two processes hand a byte to and fro through two pipes, as
 * pipetest does. The first process says "=== ready" on the console once that has gone on for a while, and it goes on until QEMU ends.
 * `pingpong=CPUS,WARM` on the kernel's command line: 1 binds both processes to CPU 0, 2 gives each a CPU; and messages before "ready".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static int bind_to(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    return sched_setaffinity(0, sizeof cpus, &cpus);
}

static int fail(const char *what) {
    printf("=== error %s\n", what);
    fflush(stdout);
    for (;;) pause();
}

int main(void) {
    char line[4096] = "", byte = 'x';
    int there[2], back[2], cpus = 0, file;
    long warm = 0;
    mount("proc", "/proc", "proc", 0, NULL);
    file = open("/proc/cmdline", O_RDONLY);
    if (file < 0 || read(file, line, sizeof line - 1) < 0) fail("no command line");
    const char *word = strstr(line, "pingpong=");
    if (!word || sscanf(word, "pingpong=%d,%ld", &cpus, &warm) != 2) fail("no pingpong=CPUS,WARM");
    if (pipe(there) || pipe(back)) fail("pipe");
    if (bind_to(0)) fail("CPU 0");
    if (!fork()) {
        if (cpus == 2 && bind_to(1)) fail("CPU 1");
        while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {}
        fail("the other end");
    }
    for (long round = 0;; round++) {
        if (round == warm) {
            printf("=== ready\n");
            fflush(stdout);
        }
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) fail("this end");
    }
}
