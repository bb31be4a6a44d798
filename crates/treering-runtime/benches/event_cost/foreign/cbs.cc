// Tasks of a benchmark, by name and by number, with their processor time as in every benchmark.
#include <cbs/bench/bench.hh>

#include "batches.h"

static bench::TaskId id;

static void start_by_name(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; ++turn) {
        bench::task_start("assemble");
        bench::task_stop();
    }
}

static void start_by_number(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; ++turn) {
        bench::task_start(id);
        bench::task_stop();
    }
}

static void scope_by_name(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; ++turn)
        bench::ScopedTask task("assemble");
}

static void scope_by_number(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; ++turn)
        bench::ScopedTask task(id);
}

int main(int argc, char **argv) {
    bench::start("cost of tasks", "");
    id = bench::task_id("assemble");
    print_cost("CBS: start and stop by name", start_by_name, argc, argv);
    print_cost("CBS: start and stop by number", start_by_number, argc, argv);
    print_cost("CBS: scoped task by name", scope_by_name, argc, argv);
    print_cost("CBS: scoped task by number", scope_by_number, argc, argv);
    return 0;
}
