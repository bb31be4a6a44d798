// The classes and macros of treering.hpp call the right functions in the right order.
#include <treering/treering.hpp>

#include <stdexcept>
#include <type_traits>

#include "mock_runtime.h"

static_assert(std::is_nothrow_constructible_v<treering::Scope, treering::Task>);
static_assert(std::is_nothrow_constructible_v<treering::Scope, treering::Site &>);
static_assert(std::is_nothrow_destructible_v<treering::Scope>);
static_assert(!std::is_copy_constructible_v<treering::Scope>);

static void throws()
{
    TREERING_FUNCTION();
    TREERING_SCOPE("twice in one scope");
    throw std::runtime_error("as it does");
}

static void named(const std::string &name) { TREERING_SCOPE_NAMED(name); }

static void tasks()
{
    const treering::Task task("known");
    for (int i = 0; i < 2; ++i) {
        const treering::Scope scope(task);
        scope.argument_size(10);
    }
    EXPECT_CALLS("task(known) enter(known)=5 size(5,10) leave(5) enter(known)=6 size(6,10) leave(6)");
}

static void leaves()
{
    const treering::Task task("timed task");
    {
        const treering::Leaf leaf(task);
        TREERING_LEAF("timed leaf", 16);
        TREERING_LEAF("plain leaf", 0);
    }
    EXPECT_CALLS("task(timed task) leaf(timed task) task_sampled(timed leaf,16) leaf(timed leaf) "
                 "task_sampled(plain leaf,0) leaf(plain leaf) leave_leaf(8,7) leave_leaf(7,7)");
}

static void texts()
{
    using std::string_view;
    treering::point(string_view("a point", 3));
    treering::mark(string_view("a mark", 3));
    treering::parameter("n", std::string("3"));
    treering::result("error", "0.5");
    treering::bench_start("name", "about");
    treering::bench_stop();
    EXPECT_CALLS("point(a p) mark(a m) parameter(n,3) result(error,0.5) bench_start(name,about) bench_stop");
}

static void reports()
{
    const auto report = [] { return treering::report(treering::Verbosity::minimal, treering::Format::dot, 3); };
    mock_report("graph", "graph");
    EXPECT(report() == "graph");
    EXPECT_CALLS("report(1,1,3) report(1,1,3)");
    // It grew, or shrank, between asking for its size and reading it.
    const std::string longer(5000, 'x');
    mock_report("short", longer.c_str());
    EXPECT(report() == longer);
    mock_report(longer.c_str(), "short");
    EXPECT(report() == "short");
    mock_report("", "");
    EXPECT(report().empty());
    mock_reset();
}

int main()
{
    try {
        throws();
    } catch (const std::runtime_error &) {
    }
    EXPECT_CALLS("task_at(throws) enter(throws)=1 task_at(twice in one scope) enter(twice in one scope)=2 "
                 "leave(2) leave(1)");
    named("x");
    named("y");
    EXPECT_CALLS("task(x) enter(x)=3 leave(3) task(y) enter(y)=4 leave(4)");
    tasks();
    leaves();
    texts();
    reports();

    EXPECT(treering::set_profiler(treering::Profiler::count));
    EXPECT(treering::flush());
    treering::clear_profiler();
    EXPECT_CALLS("set_profiler(3) flush clear_profiler");
    named("off");
    const treering::Scope off(treering::Task("also off"));
    EXPECT_CALLS("task(also off)");
}
