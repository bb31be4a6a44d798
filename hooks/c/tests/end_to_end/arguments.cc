// A program whose user may ask for reports: prints the arguments that are left, and runs a benchmark.
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <sys/wait.h>
#include <unistd.h>

#include <cbs/bench/bench_macros.hh>

static bool has(char **arguments, const char *wanted)
{
    while (*arguments != 0 && std::strcmp(*arguments, wanted) != 0)
        ++arguments;
    return *arguments != 0;
}

static void work()
{
    BENCH_TASK_SCOPED("outer");
    for (int i = 0; i < 3; ++i) {
        BENCH_TASK_START("inner");
        BENCH_TASK_STOP();
    }
}

int main(int argc, char **argv)
{
    const bool good = BENCH_PARSE_ARGUMENTS(argc, argv);
    if (has(argv, "--help")) {
        std::cout << "Options:\n" << BENCH_ARGUMENTS_HELP();
        return 0;
    }
    for (int i = 1; i < argc; ++i)
        std::cout << argv[i] << ' ';
    std::cout << std::endl;
    if (!good)
        return 2;
    if (argv[argc] != 0)
        return 3;
    if (has(argv, "idle"))
        return 0;
    BENCH_START("arguments", "");
    work();
    work();
    if (has(argv, "exit"))
        std::exit(7);
    if (has(argv, "fork")) {
        const pid_t child = fork();
        if (child == 0)
            std::exit(0);
        waitpid(child, 0, 0);
    }
    std::cout << "stopping" << std::endl;
    BENCH_STOP();
    std::cout << "stopped" << std::endl;
    std::cerr << "after the stop" << std::endl;
    BENCH_RESULT("late", "told after the stop");
}
