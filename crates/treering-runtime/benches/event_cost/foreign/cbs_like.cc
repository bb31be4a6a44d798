// A task timer of the classical design: tasks by name in a sorted map, two kernel clocks at either
// end of each. Written for comparison; not the code of any library.
#include <map>
#include <string>

#include <sys/resource.h>
#include <sys/time.h>

#include "batches.h"

namespace {

struct Clocks {
    double wall, user, system;
};

double seconds(const timeval &time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; }

Clocks read_clocks() {
    rusage usage;
    timeval wall;
    getrusage(RUSAGE_SELF, &usage);
    gettimeofday(&wall, nullptr);
    return {seconds(wall), seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

struct Task {
    uint64_t calls = 0;
    Clocks started{}, spent{};
};

std::map<std::string, Task> tasks;

void start(const std::string &name) {
    Task &task = tasks[name];
    ++task.calls;
    task.started = read_clocks();
}

void stop(const std::string &name) {
    Task &task = tasks[name];
    Clocks now = read_clocks();
    task.spent.wall += now.wall - task.started.wall;
    task.spent.user += now.user - task.started.user;
    task.spent.system += now.system - task.started.system;
}

void one(uint64_t turns) {
    for (uint64_t turn = 0; turn < turns; ++turn) {
        start("assemble");
        stop("assemble");
    }
}

} // namespace

int main(int argc, char **argv) {
    for (int task = 0; task < 20; ++task)
        start("task " + std::to_string(task));
    print_cost("like CBS: std::map<std::string>, getrusage, gettimeofday", one, argc, argv);
    return 0;
}
