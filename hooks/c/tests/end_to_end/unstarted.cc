// Reports without a benchmark.
#include <cbs/bench/bench_macros.hh>

int main()
{
    BENCH_STOP();
    BENCH_SAVE("unstarted.xml", bench::Options());
    BENCH_SAVE("unstarted.dot", bench::Options(bench::Options::VE_FULL, bench::Options::FO_DOT));
    BENCH_PRINT(bench::Options(bench::Options::VE_FULL, bench::Options::FO_TEXT));
}
