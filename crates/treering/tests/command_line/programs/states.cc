// A benchmark with a parameter and results, as programs for CBS state them.
#include <cbs/bench/bench_macros.hh>

#include <cstdlib>

static volatile long sink;

static void step(long n)
{
    BENCH_TASK_SCOPED("step");
    for (long i = 0; i < n; ++i)
        sink = sink + i;
}

int main(int, char** arguments)
{
    const long n = std::atol(arguments[1]);
    BENCH_START("determinize", "States of the subset construction.");
    BENCH_PARAMETER("size", n);
    for (long i = 0; i < n; ++i)
        step(n * 100);
    BENCH_RESULT("states", n * n);
    BENCH_RESULT("kind", "list");
    BENCH_STOP();
}
