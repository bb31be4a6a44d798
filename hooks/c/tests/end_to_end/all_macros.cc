// Every macro of CBS, with counts that are known: see crates/treering-runtime/tests/runtime/cbs.rs.
#include <iostream>

#include <cbs/bench/bench_macros.hh>

static volatile unsigned sink;

static void work(unsigned rounds)
{
    for (unsigned round = 0; round < rounds * 100000; ++round)
        sink = sink + round;
}

static void pong(int depth);

static void ping(int depth)
{
    BENCH_TASK_SCOPED("ping");
    work(1);
    if (depth > 0)
        pong(depth - 1);
}

static void pong(int depth)
{
    BENCH_TASK_SCOPED(std::string("pong"));
    work(1);
    if (depth > 0)
        ping(depth - 1);
}

static void factorial(int n)
{
    BENCH_TASK_START("factorial");
    if (n > 1)
        factorial(n - 1);
    BENCH_TASK_STOP();
}

static void throwing()
{
    BENCH_TASK_SCOPED("throwing");
    throw 1;
}

int main()
{
    BENCH_TASK_START("before the start: ignored");
    BENCH_TASK_STOP();

    BENCH_START("all \"macros\"", "Every macro,\n<once> & more");
    BENCH_PARAMETER("depth", 5);
    BENCH_TASK_START("outer");
    for (int i = 0; i < 3; ++i)
        ping(5);
    BENCH_TASK_STOP();
    factorial(10);
    for (int i = 0; i < 4; ++i) {
        try {
            throwing();
        } catch (int) {
        }
    }
    BENCH_MEMPLOT("half of it");
    BENCH_SAVE("running.xml", bench::Options());
    work(5);
    BENCH_RESULT("answer", 42L);
    BENCH_STOP();
    BENCH_RESULT("late", "told after the stop");
    BENCH_TASK_START("after the stop: ignored");
    BENCH_TASK_STOP();

    BENCH_PRINT(bench::Options(bench::Options::VE_NORMAL, bench::Options::FO_TEXT));
    BENCH_DUMP(std::cerr, bench::Options(bench::Options::VE_FULL, bench::Options::FO_TEXT, 0));
    BENCH_SAVE("stopped.xml", bench::Options());
    BENCH_SAVE("stopped.dot", bench::Options(bench::Options::VE_FULL, bench::Options::FO_DOT));
    BENCH_SAVE("stopped.plot", bench::Options(bench::Options::VE_NORMAL, bench::Options::FO_GNUPLOT));
}
