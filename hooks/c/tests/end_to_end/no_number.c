/* Enters the task of number 0, which is given out while nothing is recorded: nothing of it is counted,
 * and the tasks around it end when they should. */
#include <stdlib.h>

#include <treering/treering.h>

static uint32_t none;

static void inside(uint32_t task)
{
    uint64_t token;
    treering_task_start(task);
    treering_leave(treering_enter(none));
    token = treering_enter_frame(none, 0);
    treering_leaf_leave(treering_leaf_enter(none));
    treering_leave(treering_redo(none));
    treering_leave(treering_enter(treering_task("inside")));
    treering_task_start(none);
    treering_leave(treering_enter(treering_task("in none")));
    treering_task_stop();
    treering_leave(token);
    treering_task_stop();
}

int main(int argc, char **argv)
{
    treering_clear_profiler();
    none = treering_task("none");
    treering_set_profiler(argc > 1 ? atoi(argv[1]) : TREERING_CALL_GRAPH);
    /* Where nothing runs, and in a task. */
    inside(none);
    for (int i = 0; i < 3; ++i)
        inside(treering_task("outer"));
    return none == 0 ? 0 : 3;
}
