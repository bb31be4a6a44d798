/* A clock that only sleeping moves, to be loaded before the C library (LD_PRELOAD): what a program takes is what it
 * says, on any machine. Each reading takes a nanosecond, so that who waits for a time to come does not wait for ever.
 * The processor's counter is said to be forbidden. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_llong now_ns = 1000000000000;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_RAW && clock != CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, clock, time);
    long long now = atomic_fetch_add(&now_ns, 1);
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    atomic_fetch_add(&now_ns, wanted->tv_sec * 1000000000LL + wanted->tv_nsec);
    return 0;
}

int prctl(int option, ...)
{
    va_list list;
    va_start(list, option);
    unsigned long words[4];
    for (int at = 0; at < 4; at++)
        words[at] = va_arg(list, unsigned long);
    va_end(list);
    if (option != PR_GET_TSC)
        return (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
    *(int *)words[0] = PR_TSC_SIGSEGV;
    return 0;
}
