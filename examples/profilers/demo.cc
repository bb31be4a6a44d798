// A small program to compare profilers with. How often each function is called is known
// beforehand as a function of n: see README.md.
//
//     demo N [SCALE]
//
// SCALE, 100 by default, is how much work each function does.
#include <cbs/bench/bench_macros.hh>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <list>
#include <string>

// Inlined functions have no calls that could be counted.
#define KEPT __attribute__((noinline))

static long scale = 100;

KEPT void new_integer(int n);

// Opens and closes a file, and goes back to new_integer.
KEPT void file_io(int n)
{
    BENCH_TASK_SCOPED("file_io");
    for (long i = 0; i < n * scale; ++i)
        std::ofstream file("demo.tmp");
    if (n > 0)
        new_integer(n - 1);
}

// Takes and gives back memory for single integers.
KEPT void new_integer(int n)
{
    BENCH_TASK_SCOPED("new_integer");
    for (long i = 0; i < n * scale * 100; ++i) {
        int *volatile integer = new int(n);
        delete integer;
    }
    file_io(n);
}

// Makes a list longer.
KEPT void list_push_back(int n, std::list<int> &list)
{
    BENCH_TASK_SCOPED("list_push_back");
    for (long i = 0; i < n * scale * 100; ++i)
        list.push_back(n);
    if (n > 0)
        list_push_back(n - 1, list);
}

KEPT void parent(int n)
{
    BENCH_TASK_SCOPED("parent");
    for (int i = 0; i < n; ++i) {
        new_integer(n);
        std::list<int> list;
        list_push_back(n, list);
        BENCH_MEMPLOT("list " + std::to_string(i + 1));
    }
}

int main(int count, char **arguments)
{
    const int n = count > 1 ? std::atoi(arguments[1]) : -1;
    if (n < 0 || n > 100) {
        std::fprintf(stderr, "usage: %s N [SCALE], with N from 0 to 100\n", arguments[0]);
        return 2;
    }
    scale = count > 2 ? std::atol(arguments[2]) : scale;
    BENCH_START("profilers", "A program whose calls are known beforehand.");
    BENCH_PARAMETER("n", n);
    BENCH_PARAMETER("scale", scale);
    parent(n);
    BENCH_STOP();
    std::remove("demo.tmp");
    BENCH_PRINT(bench::Options(bench::Options::VE_NORMAL, bench::Options::FO_TEXT));
    BENCH_SAVE("demo.xml", bench::Options());
    BENCH_SAVE("demo.dot", bench::Options(bench::Options::VE_NORMAL, bench::Options::FO_DOT));
    BENCH_SAVE("demo.plot", bench::Options(bench::Options::VE_NORMAL, bench::Options::FO_GNUPLOT));
}
