/* Runs of a known course.

   usage: courses stall    eight times: 30 frames of 3 ms, then 40 ms in write_pages, by processor time
          courses convoy   four workers: 30 requests of 4 ms each, then 12 of 20 ms under one lock, then 30 more of 4 ms
          courses pool     four workers do 40 tasks of 10 ms, and one of 400 ms, which is taken last */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER, queue = PTHREAD_MUTEX_INITIALIZER;
static atomic_int arrived;
static int taken;
volatile uint64_t result;

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* Work of so many milliseconds of this thread's processor time. */
#define TASK(name)                                                        \
    __attribute__((noinline)) void name(double ms)                        \
    {                                                                     \
        for (double end = processor_ms() + ms; processor_ms() < end;)     \
            for (int round = 0; round < 20000; round++)                   \
                result += round;                                          \
    }
TASK(draw)
TASK(write_pages)
TASK(answer)
TASK(rehash)
TASK(short_task)
TASK(long_task)

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, 0);
}

/* Waits until four workers have arrived so often, without a lock. */
static void meet(int times)
{
    arrived++;
    while (arrived < 4 * times)
        pause_ms(1);
}

static void stall(void)
{
    for (int second = 0; second < 8; second++) {
        for (int frame = 0; frame < 30; frame++) {
            draw(3);
            pause_ms(7);
        }
        write_pages(40);
    }
}

__attribute__((noinline)) void update_table(void)
{
    pthread_mutex_lock(&table);
    rehash(20);
    pthread_mutex_unlock(&table);
    result++;
}

static void *worker(void *unused)
{
    for (int request = 0; request < 30; request++) {
        answer(4);
        pause_ms(6);
    }
    meet(1);
    for (int request = 0; request < 12; request++)
        update_table();
    meet(2);
    for (int request = 0; request < 30; request++) {
        answer(4);
        pause_ms(6);
    }
    return unused;
}

static void *of_pool(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&queue);
        int task = taken++;
        pthread_mutex_unlock(&queue);
        if (task > 40)
            return unused;
        if (task < 40)
            short_task(10);
        else
            long_task(400);
    }
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    if (strcmp(which, "stall") == 0)
        return stall(), 0;
    void *(*start)(void *) = strcmp(which, "convoy") == 0 ? worker : strcmp(which, "pool") == 0 ? of_pool : 0;
    if (!start)
        return fprintf(stderr, "usage: courses stall|convoy|pool\n"), 2;
    pthread_t threads[4];
    for (int at = 0; at < 4; at++) {
        char name[16];
        pthread_create(&threads[at], 0, start, 0);
        snprintf(name, sizeof name, "worker %d", at);
        pthread_setname_np(threads[at], name);
    }
    for (int at = 0; at < 4; at++)
        pthread_join(threads[at], 0);
    return 0;
}
