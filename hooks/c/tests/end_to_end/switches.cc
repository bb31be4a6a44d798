// The timer and the memory plot are switched off and on while the program runs, and points are taken in
// tasks of two threads.
#include <thread>

#include <cbs/bench/bench_macros.hh>

static void worker()
{
    BENCH_TASK_SCOPED("worker");
    BENCH_MEMPLOT("in a thread");
}

int main()
{
    BENCH_START("switches", "");
    BENCH_TASK_START("outer");
    BENCH_MEMPLOT("in outer");
    {
        BENCH_TASK_SCOPED("inner");
        BENCH_MEMPLOT("in inner");
    }
    std::thread(worker).join();
    BENCH_MEMPLOT("in outer again");
    BENCH_TASK_STOP();
    BENCH_MEMPLOT("outside");

    BENCH_TASK_START("around");
    BENCH_ENABLE_TIMER(false);
    {
        BENCH_TASK_SCOPED("not timed");
        BENCH_TASK_START("not timed");
        BENCH_TASK_START(bench::task_id("not timed"));
        BENCH_MEMPLOT("timer off");
        BENCH_TASK_STOP();
        BENCH_ENABLE_TIMER(true);
        BENCH_TASK_STOP();
    }
    {
        BENCH_TASK_SCOPED("within");
        BENCH_ENABLE_TIMER(false);
    }
    BENCH_TASK_STOP();
    BENCH_ENABLE_TIMER(true);

    BENCH_ENABLE_MEMPLOT(false);
    BENCH_MEMPLOT("not taken");
    BENCH_ENABLE_MEMPLOT(true);
    for (int i = 0; i < 100000; ++i) {
        BENCH_TASK_SCOPED("often");
    }
    BENCH_STOP();
    BENCH_SAVE("switches.xml", bench::Options());
}
