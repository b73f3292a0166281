/*
 * The whole user space of a recording guest: the first process mounts what is needed, plays the tasks of /program, and sends
 * what was recorded through QEMU's debug port. It is C because it needs fork() and sched_setattr(), and the Rust here has no unsafe.
 * `cargo xtask record-fidelity` writes /program (src/program.rs says how), so that nothing is checked here that was checked there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEBUG_PORT 0xe9
#define MOST 4096
#define SECOND 1000000000LL
/* What a task misses of the clock while another one runs, at least; an interrupt takes less. */
#define LEAST_TURN 100000

/* struct sched_attr, which the C library's headers do not have. */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t util_min, util_max;
};

struct step {
    char op[16];
    int64_t a, b;
    struct attr attr;
    char path[200];
};

struct task {
    char name[16], cpus[256], group[200], session[64], process[64];
    int64_t at;
    struct attr attr;
    int first, end; /* steps */
    pid_t pid;
};

/* What a task leaves behind: its own /proc/PID/task/TID/sched. */
struct left {
    char sched[4000];
    struct rusage usage;
};

struct change {
    int64_t at;
    char path[200], text[200];
};

static struct step steps[MOST * 16];
static struct task tasks[MOST];
static struct change changes[MOST], setup[MOST], dumps[MOST];
static int nr_steps, nr_tasks, nr_changes, nr_setup, nr_dumps, nr_pipes;
static int by_time[MOST]; /* tasks in the order in which they are forked; of equal times, in the script's */
static struct left *left;
static int pipes[MOST][2];
static int64_t settle, start;
static int legacy, with_cpusets;

static void say(const char *form, ...)
{
    static char text[1 << 16];
    va_list list;
    va_start(list, form);
    int length = vsnprintf(text, sizeof text, form, list);
    va_end(list);
    outsb(DEBUG_PORT, text, length);
}

static void die(const char *what, const char *of)
{
    say("=== error %s %s: %s\n", what, of, strerror(errno));
    reboot(RB_POWER_OFF);
    pause();
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static int64_t cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void sleep_until(int64_t when)
{
    struct timespec t = { when / SECOND, when % SECOND };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void spin_until(int64_t when)
{
    while (now() < when)
        for (volatile int i = 0; i < 200; i++)
            ;
}

/*
 * Each look at the own CPU time has the kernel account for it, which a task that only works does not: EEVDF places who is woken by what
 * was accounted so far. So nobody looks at the end of a time in which no other task can have run, however briefly.
 */
static void run(int64_t ns)
{
    int64_t end = cpu_time() + ns, more = ns;
    while (more > 0) {
        int64_t last = now(), until = last + more, gap = 0;
        while (last < until) {
            for (volatile int i = 0; i < 200; i++)
                ;
            int64_t next = now();
            gap = next - last > gap ? next - last : gap;
            last = next;
        }
        if (gap < LEAST_TURN)
            return;
        more = end - cpu_time();
    }
}

static void put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_TRUNC);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        die("write", path);
    close(file);
}

static void send_file(const char *tag, const char *path)
{
    static char bytes[1 << 16];
    int file = open(path, O_RDONLY);
    ssize_t length;
    say("=== file %s\n", tag);
    while ((length = read(file, bytes, sizeof bytes)) > 0)
        outsb(DEBUG_PORT, bytes, length);
    close(file);
}

static void set_attr(struct attr *attr)
{
    attr->size = sizeof *attr;
    if (syscall(SYS_sched_setattr, 0, attr, 0))
        die("sched_setattr", "");
}

/* 0-3,8 */
static void set_cpus(char *list)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (char *at = list; *at;) {
        int from = strtol(at, &at, 10), to = *at == '-' ? strtol(at + 1, &at, 10) : from;
        while (from <= to)
            CPU_SET(from++, &set);
        at += *at == ',';
    }
    if (sched_setaffinity(0, sizeof set, &set))
        die("sched_setaffinity", list);
}

static void enter(const char *group)
{
    char path[300];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cgroup.procs", group);
    put(path, "0");
}

static void play(struct task *task)
{
    static int rounds[sizeof steps / sizeof *steps];
    int64_t period = now();
    char byte = 0, text[32];
    for (int at = task->first; at < task->end; at++) {
        struct step *step = &steps[at];
        if (!strcmp(step->op, "run"))
            run(step->a);
        else if (!strcmp(step->op, "spin"))
            spin_until(start + step->a);
        else if (!strcmp(step->op, "sleep"))
            sleep_until(now() + step->a);
        else if (!strcmp(step->op, "until"))
            sleep_until(period = start + step->a);
        else if (!strcmp(step->op, "every"))
            sleep_until(period += step->a);
        else if (!strcmp(step->op, "yield"))
            sched_yield();
        else if (!strcmp(step->op, "setsid"))
            setsid();
        else if (!strcmp(step->op, "autogroup"))
            sprintf(text, "%d", (int)step->a), put("/proc/self/autogroup", text);
        else if (!strcmp(step->op, "enter"))
            enter(step->path);
        else if (!strcmp(step->op, "nice"))
            setpriority(PRIO_PROCESS, 0, step->a);
        else if (!strcmp(step->op, "attr"))
            step->attr.nice = getpriority(PRIO_PROCESS, 0), set_attr(&step->attr);
        else if (!strcmp(step->op, "cpus"))
            set_cpus(step->path);
        else if (!strcmp(step->op, "read") && read(pipes[step->a][0], &byte, 1) != 1)
            die("read", "a pipe");
        else if (!strcmp(step->op, "write") && write(pipes[step->a][1], &byte, 1) != 1)
            die("write", "a pipe");
        else if (!strcmp(step->op, "again")) {
            if (++rounds[at] < step->b)
                at = task->first + step->a - 1;
            else
                rounds[at] = 0;
        }
    }
}

static void live(struct task *task)
{
    prctl(PR_SET_NAME, task->name);
    if (strcmp(task->group, "-"))
        enter(task->group);
    if (strcmp(task->cpus, "-"))
        set_cpus(task->cpus);
    /* Other policies keep a nice level that they do not set. */
    if (task->attr.nice && task->attr.policy != SCHED_OTHER && task->attr.policy != SCHED_BATCH && task->attr.policy != SCHED_IDLE)
        setpriority(PRIO_PROCESS, 0, task->attr.nice);
    set_attr(&task->attr);
    play(task);
    const char *own = *task->process ? "/proc/thread-self/sched" : "/proc/self/sched";
    int file = open(own, O_RDONLY);
    if (read(file, left[task - tasks].sched, sizeof left->sched - 1) < 0)
        die("read", own);
    close(file);
}

static void *live_thread(void *task)
{
    live(task);
    getrusage(RUSAGE_THREAD, &left[(struct task *)task - tasks].usage);
    return NULL;
}

/* A process of one task lives its life; of several, the first of them makes the others its threads and outlives them. */
static void live_process(struct task *first)
{
    static pthread_t threads[MOST];
    int nr_threads = 0;
    for (struct task *task = first + 1; *first->process && task < tasks + nr_tasks; task++)
        if (!strcmp(task->process, first->process) && pthread_create(&threads[nr_threads++], NULL, live_thread, task))
            die("pthread_create", task->name);
    if (*first->process)
        live_thread(first);
    else
        live(first);
    while (nr_threads)
        pthread_join(threads[--nr_threads], NULL);
    _exit(0);
}

/* Whether a task is a thread of a process that another one begins. */
static int joins(struct task *task)
{
    for (struct task *before = tasks; *task->process && before < task; before++)
        if (!strcmp(before->process, task->process))
            return 1;
    return 0;
}

static void order_by_time(void)
{
    for (int i = 0; i < nr_tasks; i++) {
        int to = i;
        for (; to && tasks[by_time[to - 1]].at > tasks[i].at; to--)
            by_time[to] = by_time[to - 1];
        by_time[to] = i;
    }
}

/* Forks the tasks of a session ("-": of none, and the leaders of all), each at its time, and waits for them. */
static void fork_all(const char *session)
{
    static struct left leader;
    for (int i = 0; i < nr_tasks; i++) {
        struct task *task = &tasks[by_time[i]];
        int leads = !strcmp(session, "-") && strcmp(task->session, "-");
        for (int j = 0; j < i && leads; j++)
            leads = strcmp(tasks[by_time[j]].session, task->session);
        if ((strcmp(task->session, session) && !leads) || joins(task))
            continue;
        if (task->at)
            sleep_until(start + task->at);
        if (!(task->pid = fork())) {
            if (!leads)
                live_process(task);
            setsid();
            fork_all(task->session);
            _exit(0);
        }
    }
    struct rusage usage;
    for (pid_t pid; (pid = wait4(-1, NULL, 0, &usage)) > 0;) {
        struct left *to = &leader;
        for (int i = 0; i < nr_tasks; i++)
            if (tasks[i].pid == pid && !strcmp(tasks[i].session, session) && !*tasks[i].process)
                to = &left[i];
        to->usage = usage;
    }
}

static void change_all(void)
{
    for (int i = 0; i < nr_changes; i++) {
        sleep_until(start + changes[i].at);
        put(changes[i].path, changes[i].text);
    }
    _exit(0);
}

static int scan_attr(const char *text, struct attr *to)
{
    int length = 0;
    long long unsigned flags, runtime, deadline, period;
    sscanf(text, "%u %d %u %llu %llu %llu %llu %u %u %n", &to->policy, &to->nice, &to->priority, &flags, &runtime, &deadline,
           &period, &to->util_min, &to->util_max, &length);
    to->flags = flags, to->runtime = runtime, to->deadline = deadline, to->period = period;
    return length;
}

static void read_program(void)
{
    static char line[4096];
    FILE *file = fopen("/program", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char word[16] = "";
        int used = 0;
        sscanf(line, "%15s %n", word, &used);
        char *rest = line + used;
        long long a = 0, b = 0;
        struct change *change = NULL;
        if (!strcmp(word, "settle"))
            settle = atoll(rest);
        else if (!strcmp(word, "legacy"))
            legacy = 1;
        else if (!strcmp(word, "cpusets"))
            with_cpusets = 1;
        else if (!strcmp(word, "pipes"))
            nr_pipes = atoi(rest);
        else if (!strcmp(word, "write") || !strcmp(word, "mkdir"))
            change = &setup[nr_setup++];
        else if (!strcmp(word, "dump"))
            change = &dumps[nr_dumps++];
        else if (!strcmp(word, "at"))
            change = &changes[nr_changes++], change->at = strtoll(rest, &rest, 10);
        else if (!strcmp(word, "task")) {
            struct task *task = &tasks[nr_tasks++];
            sscanf(rest, "%15s %lld %255s %199s %63s %n", task->name, &a, task->cpus, task->group, task->session, &used);
            task->at = a, task->first = task->end = nr_steps;
            scan_attr(rest + used, &task->attr);
        } else if (!strcmp(word, "process")) {
            snprintf(tasks[nr_tasks - 1].process, sizeof tasks->process, "%s", rest);
        } else if (!strcmp(word, "step")) {
            struct step *step = &steps[nr_steps++];
            sscanf(rest, "%15s %n", step->op, &used);
            if (!strcmp(step->op, "attr"))
                scan_attr(rest + used, &step->attr);
            else if (!strcmp(step->op, "enter") || !strcmp(step->op, "cpus"))
                snprintf(step->path, sizeof step->path, "%s", rest + used);
            else if (sscanf(rest + used, "%lld %lld", &a, &b) > 0)
                step->a = a, step->b = b;
            tasks[nr_tasks - 1].end = nr_steps;
        }
        if (change) {
            char *end = stpncpy(change->path, rest + strspn(rest, " "), sizeof change->path - 1);
            char *space = strchr(change->path, ' ');
            (void)end;
            if (space)
                *space = 0, snprintf(change->text, sizeof change->text, "%s", space + 1);
        }
    }
}

/*
 * The first process has made hundreds of wakeups of kernel threads, and who is forked inherits that count (wakee_flips): the kernel would
 * take all tasks for servers of many, for as long as they wake nobody. It halves with the first wakeup of each second.
 */
static void forget_wakees(void)
{
    int wake[2];
    char byte = 0;
    if (pipe(wake))
        die("pipe", "");
    pid_t reader = fork();
    if (!reader) {
        close(wake[1]);
        while (read(wake[0], &byte, 1) == 1)
            ;
        _exit(0);
    }
    close(wake[0]);
    for (int halvings = 0; halvings < 12; halvings++) {
        sleep_until(now() + SECOND + SECOND / 50);
        if (write(wake[1], &byte, 1) != 1)
            die("write", "a pipe");
    }
    close(wake[1]);
    waitpid(reader, NULL, 0);
}

/*
 * The clock chip interrupts nobody 8192 times a second. With instructions counted, QEMU lets a CPU run until the next timer of any
 * device, and an interrupt from another CPU waits as long: this bounds that to 122 us.
 */
static void bound_latency(void)
{
    outb(0x0a, 0x70);
    unsigned char rate = inb(0x71);
    outb(0x0a, 0x70);
    outb((rate & 0xf0) | 3, 0x71);
    outb(0x0b, 0x70);
    unsigned char control = inb(0x71);
    outb(0x0b, 0x70);
    outb(control | 0x40, 0x71);
}

int main(void)
{
    if (ioperm(DEBUG_PORT, 1, 1) || ioperm(0x70, 2, 1))
        return 1;
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    mount("debug", "/sys/kernel/debug", "debugfs", 0, NULL);
    mount("trace", "/sys/kernel/tracing", "tracefs", 0, NULL);
    bound_latency();
    read_program();
    order_by_time();
    if (mount("cgroup", "/sys/fs/cgroup", legacy ? "cgroup" : "cgroup2", 0, legacy ? "cpu" : NULL))
        die("mount", "/sys/fs/cgroup");
    if (!nr_tasks)
        die("read", "/program");
    left = mmap(NULL, nr_tasks * sizeof *left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < nr_pipes; i++)
        if (pipe(pipes[i]))
            die("pipe", "");
    /* What boots does its work first; a CPU that idles costs nothing. */
    sleep_until(now() + settle);
    if (with_cpusets && (mkdir("/cpuset", 0755) || mount("cpuset", "/cpuset", "cgroup", 0, "cpuset")))
        die("mount", "cpuset");
    for (int i = 0; i < nr_setup; i++)
        if (*setup[i].text)
            put(setup[i].path, setup[i].text);
        else if (mkdir(setup[i].path, 0755))
            die("mkdir", setup[i].path);
    forget_wakees(); /* those of the settings, too: tracing wakes a thread of each CPU */
    put("/sys/kernel/tracing/tracing_on", "1");
    start = now();
    if (nr_changes && !fork())
        change_all();
    fork_all("-");
    put("/sys/kernel/tracing/tracing_on", "0");
    for (int i = 0; i < nr_tasks; i++) {
        struct rusage *u = &left[i].usage;
        say("=== task %s %lld %lld %ld %ld\n%s", tasks[i].name, u->ru_utime.tv_sec * 1000000LL + u->ru_utime.tv_usec,
            u->ru_stime.tv_sec * 1000000LL + u->ru_stime.tv_usec, u->ru_nvcsw, u->ru_nivcsw, left[i].sched);
    }
    for (int i = 0; i < nr_dumps; i++)
        send_file(dumps[i].text, dumps[i].path);
    say("=== end\n");
    reboot(RB_POWER_OFF);
    pause();
}
