// Tasks by number: the same tasks as by name. With an argument, the number is asked for while nothing
// is recorded, so that it is none.
#include <cbs/bench/bench_macros.hh>

static void recurse(bench::TaskId id, int depth)
{
    BENCH_TASK_SCOPED(id);
    if (depth > 1)
        recurse(id, depth - 1);
}

int main(int argc, char **)
{
    if (argc > 1)
        treering_clear_profiler();
    else
        treering_set_profiler(TREERING_CALL_GRAPH);
    const bench::TaskId started = bench::task_id("started"), scoped = bench::task_id(std::string("scoped"));
    treering_set_profiler(TREERING_CALL_GRAPH);
    BENCH_TASK_START(started);
    BENCH_TASK_STOP();

    BENCH_START("by id", "");
    BENCH_TASK_START("outer");
    for (int i = 0; i < 5; ++i) {
        BENCH_TASK_START(started);
        recurse(scoped, 3);
        BENCH_TASK_STOP();
    }
    BENCH_TASK_START("started");
    BENCH_TASK_STOP();
    BENCH_TASK_STOP();
    BENCH_STOP();
    BENCH_SAVE("by_id.xml", bench::Options());
}
