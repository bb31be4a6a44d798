// Without tasks and memory plot, the benchmark still has its parameters, results and reports.
#define BENCH_CALLGRAPH_DISABLED
#define BENCH_MEMPLOT_DISABLED
#include <cbs/bench/bench_macros.hh>

#include "mock_runtime.h"

int main()
{
    BENCH_START("name", "about");
    BENCH_TASK_SCOPED(missing);
    BENCH_TASK_START(missing);
    BENCH_TASK_STOP();
    BENCH_MEMPLOT(missing);
    BENCH_ENABLE_TIMER(missing);
    BENCH_ENABLE_MEMPLOT(missing);
    BENCH_RESULT("r", 1);
    BENCH_STOP();
    EXPECT_CALLS("bench_start(name,about) result(r,1) bench_stop");
}
