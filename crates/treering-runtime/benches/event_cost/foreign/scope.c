/* Events of a C program. */
#include "batches.h"

uint32_t treering_task(const char *name);
uint64_t treering_enter(uint32_t id);
void treering_leave(uint64_t token);

static uint32_t tasks[8];

static void one(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; turn++)
        treering_leave(treering_enter(tasks[0]));
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
    print_cost("C, call graph: one function", one, argc, argv);
    print_cost("C, call graph: 8 children by turns", by_turns, argc, argv);
    return 0;
}
