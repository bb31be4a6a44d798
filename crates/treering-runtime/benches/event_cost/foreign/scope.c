/* Events of a C program. */
#include "batches.h"

uint32_t treering_task(const char *name);
uint64_t treering_enter(uint32_t id);
void treering_leave(uint64_t token);
uint32_t treering_task_sampled(const char *name, const char *file, uint32_t line, uint32_t timed_one_in);
struct leaf {
    uint64_t node, start;
};
struct leaf treering_leaf_enter(uint32_t id);
void treering_leaf_leave(struct leaf leaf);

static uint32_t tasks[9];

static void one(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; turn++)
        treering_leave(treering_enter(tasks[0]));
}

static void leaf(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; turn++) {
        struct leaf entered = treering_leaf_enter(tasks[8]);
        if (entered.node != 0)
            treering_leaf_leave(entered);
    }
}

static void by_turns(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; turn++)
        treering_leave(treering_enter(tasks[turn % 8]));
}

int main(int argc, char **argv) {
    for (int task = 0; task < 8; task++) {
        char name[8];
        snprintf(name, sizeof name, "task%d", task);
        tasks[task] = treering_task(name);
    }
    tasks[8] = treering_task_sampled("leaf", NULL, 0, 16);
    print_cost("C, call graph: one function", one, argc, argv);
    print_cost("C, call graph: 8 children by turns", by_turns, argc, argv);
    print_cost("C leaf, timed one in 16", leaf, argc, argv);
    return 0;
}
