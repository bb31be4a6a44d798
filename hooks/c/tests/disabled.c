/* With TREERING_DISABLE nothing is called: this is linked without the library. */
#define TREERING_DISABLE
#include <treering/treering.h>

int main(void)
{
    TREERING_FUNCTION();
    TREERING_SCOPE("a");
    TREERING_SCOPE_NAMED("b");
    uint64_t token = treering_enter(treering_task("c"));
    treering_argument_size(token, 1);
    treering_leave(token);
    treering_leave(treering_enter_frame(treering_function("f", 1, "f.lang", 6, 1), 0));
    treering_leave(treering_enter(treering_function_of_kind("s", 1, "f.lang", 6, 1, TREERING_KIND_SCRIPT)));
    treering_line(1, treering_ticks(), 0);
    treering_leave(treering_enter(treering_task_sampled("g", __FILE__, __LINE__, 16)));
    TREERING_LEAF("h", 16);
    treering_leaf_leave(treering_leaf_enter(treering_task("h")));
    treering_point("d", 1);
    treering_mark("m", 1);
    treering_set_points(0);
    treering_set_output("nowhere.trg");
    return treering_is_on() || treering_set_profiler(TREERING_CALL_GRAPH) || treering_flush()
           || treering_finish() || treering_bench_is_running()
           || treering_bench_arguments(0, 0) || treering_bench_arguments_help()[0] != 0
           || treering_bench_report(TREERING_REPORT_FULL, TREERING_FORMAT_XML, TREERING_WITH_CALLGRAPH, 0, 0) != 0;
}
