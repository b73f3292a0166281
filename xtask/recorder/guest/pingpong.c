/*
 * The whole user space of a guest whose kernel's instructions are counted. A word of the kernel's command line says what happens; the
 * first process says "=== ready" on the console once that has gone on for a while, and it goes on until QEMU ends.
 *
 * `pingpong=CPUS,WARM`: two processes hand a byte to and fro through two pipes, as pipetest does. 1 binds both to CPU 0, 2 gives each a
 * CPU; and messages before "ready".
 * `mixture=HOGS,WARM`: so many processes spin, each in a session of its own, and so in an autogroup of its own where there are any.
 * Another one sleeps for a millisecond, forks and waits for its child by turns, which binds itself to a CPU and ends; and rounds before
 * "ready".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
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
    long warm;
    mount("proc", "/proc", "proc", 0, NULL);
    file = open("/proc/cmdline", O_RDONLY);
    if (file < 0 || read(file, line, sizeof line - 1) < 0) fail("no command line");
    const char *word = strstr(line, "pingpong=");
    if (word && sscanf(word, "pingpong=%d,%ld", &count, &warm) == 2) pingpong(count, warm);
    word = strstr(line, "mixture=");
    if (word && sscanf(word, "mixture=%d,%ld", &count, &warm) == 2) mixture(count, warm);
    fail("no pingpong=CPUS,WARM and no mixture=HOGS,WARM");
}
