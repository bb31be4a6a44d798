// A benchmark is started within a task that has used more CPU time before than the benchmark does altogether.
#include <ctime>

#include <cbs/bench/bench_macros.hh>

static void use_cpu(std::clock_t ms)
{
    const std::clock_t end = std::clock() + ms * (CLOCKS_PER_SEC / 1000);
    while (std::clock() < end) {
    }
}

int main()
{
    const uint32_t task = treering_task("task");
    // For the CPU time of tasks, which is not recorded without a benchmark.
    BENCH_START("before", "");
    BENCH_STOP();

    uint64_t token = treering_enter(task);
    use_cpu(100);
    BENCH_START("started within", "");
    treering_leave(token);
    token = treering_enter(task);
    use_cpu(20);
    treering_leave(token);
    BENCH_STOP();
    BENCH_SAVE("started_within.xml", bench::Options());
}
