// Starts and stops that do not balance: a report all the same, and no crash.
#include <cbs/bench/bench_macros.hh>

int main()
{
    BENCH_START("unbalanced", "");
    BENCH_TASK_STOP();
    BENCH_TASK_START("left running");
    {
        BENCH_TASK_SCOPED("scope");
        BENCH_TASK_START("left running in a scope");
    }
    BENCH_TASK_START("within the first");
    BENCH_TASK_STOP();
    BENCH_STOP();
    BENCH_STOP();
    BENCH_SAVE("unbalanced.xml", bench::Options());
}
