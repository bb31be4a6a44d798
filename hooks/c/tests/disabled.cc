// With BENCH_DISABLED no argument of a macro is looked at, and nothing is called: this is linked
// without the library, and names things that do not exist.
#define BENCH_DISABLED
#include <cbs/bench/bench_macros.hh>
#define TREERING_DISABLE
#include <treering/treering.hpp>

int main()
{
    BENCH_START(missing, missing);
    BENCH_TASK_SCOPED(missing);
    BENCH_TASK_START(missing);
    BENCH_TASK_STOP();
    BENCH_MEMPLOT(missing);
    BENCH_ENABLE_TIMER(missing);
    BENCH_ENABLE_MEMPLOT(missing);
    BENCH_PARAMETER(missing, missing);
    BENCH_RESULT(missing, missing);
    BENCH_STOP();
    BENCH_PRINT(missing);
    BENCH_DUMP(missing, missing);
    BENCH_SAVE(missing, missing);
    if (!BENCH_PARSE_ARGUMENTS(missing, missing) || std::string(BENCH_ARGUMENTS_HELP()) != "")
        return 1;
    int count = 1;
    if (!treering::bench_arguments(count, nullptr) || !treering::bench_arguments_help().empty())
        return 1;

    TREERING_FUNCTION();
    TREERING_SCOPE("a");
    TREERING_SCOPE("b");
    const treering::Scope scope(treering::Task("c"));
    TREERING_LEAF("h", 16);
    const treering::Leaf leaf(treering::Task("i"));
    treering::point("d");
    treering::mark("m");
    return treering::report(treering::Verbosity::full, treering::Format::xml, TREERING_WITH_CALLGRAPH).empty() ? 0 : 1;
}
