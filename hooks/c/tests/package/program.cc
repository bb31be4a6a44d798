#include <cbs/bench/bench_macros.hh>
#include <treering/treering.hpp>

static void assemble() { TREERING_FUNCTION(); }

int main()
{
    BENCH_START("package", "an installed library");
    for (int i = 0; i < 7; ++i)
        assemble();
    BENCH_STOP();
    BENCH_PRINT(bench::Options(bench::Options::VE_MINIMAL, bench::Options::FO_TEXT,
                               bench::Options::CO_CALLGRAPH | bench::Options::CO_NOSUMMARY));
}
