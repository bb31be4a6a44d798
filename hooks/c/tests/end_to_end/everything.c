/* Puts something of everything into its profile, in three threads, stops recording, says "ready" and
 * ends when its input does. Until then its live file can be looked at and has what the finished
 * one will have. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <treering/treering.h>

static volatile unsigned long sink;

static void work(unsigned long steps)
{
    for (unsigned long i = 0; i < steps; ++i)
        sink += i;
}

static void leaf(unsigned long steps)
{
    TREERING_FUNCTION();
    work(steps);
}

static void recursive(unsigned depth)
{
    TREERING_FUNCTION();
    work(50);
    if (depth > 0)
        recursive(depth - 1);
}

/* Through each other, so that recursion rules make a difference. */
static void pong(unsigned depth);

static void ping(unsigned depth)
{
    TREERING_FUNCTION();
    if (depth > 0)
        pong(depth - 1);
}

static void pong(unsigned depth)
{
    TREERING_FUNCTION();
    leaf(depth);
    ping(depth);
}

/* Calls with arguments of many sizes, some of which end in other ways than by returning. */
static void solutions(unsigned count)
{
    const char name[] = "solve/2", file[] = "puzzle.pl";
    uint32_t id = treering_function(name, strlen(name), file, strlen(file), 7);
    for (unsigned i = 0; i < count; ++i) {
        uint64_t token = treering_enter(id);
        treering_argument_size(token, (uint64_t)i * i);
        work(i);
        if (i % 7 == 0)
            treering_cut(token);
        if (i % 5 == 0)
            treering_fail(token);
        else if (i % 11 == 0)
            treering_exception(token);
        else
            treering_leave(token);
        if (i % 3 == 0)
            treering_leave(treering_redo(id));
    }
}

static void *worker(void *rounds)
{
    uint32_t often = treering_task_sampled("often", __FILE__, __LINE__, 16);
    for (unsigned i = 0; i < *(unsigned *)rounds; ++i) {
        uint64_t token = treering_enter(often);
        work(20);
        treering_leave(token);
        if (i % 100 == 0)
            ping(6);
    }
    treering_point("worker", 6);
    return NULL;
}

static void text(void (*tell)(const char *, size_t, const char *, size_t), const char *name, const char *value)
{
    tell(name, strlen(name), value, strlen(value));
}

int main(void)
{
    pthread_t threads[2];
    unsigned rounds[2] = {1000, 3000};
    text(treering_parameter, "rounds", "first value");
    text(treering_bench_start, "everything \"at once\"", "with\nlines");
    text(treering_parameter, "rounds", "1000");
    text(treering_parameter, "rounds", "4000");
    for (int i = 0; i < 2; ++i)
        pthread_create(&threads[i], NULL, worker, &rounds[i]);
    recursive(20);
    ping(9);
    solutions(200);
    treering_point("half of it", 10);
    treering_task_start_named("tasks \xff\n", 8);
    leaf(100000);
    treering_task_stop();
    treering_task_stop();
    for (int i = 0; i < 2; ++i)
        pthread_join(threads[i], NULL);
    text(treering_result, "sum", "12\\3");
    treering_task_start(treering_task("left open"));
    leaf(1000);
    treering_clear_profiler();
    treering_flush();
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
