// The macros and functions of CBS call the right functions in the right order.
#include <cbs/bench/bench_internals.hh>
#include <cbs/bench/bench_macros.hh>

#include <cstdio>
#include <stdexcept>

#include "mock_runtime.h"

static void scoped(const std::string &name)
{
    BENCH_TASK_SCOPED(name);
    throw std::runtime_error("leaves the scope");
}

static void outside_of_a_benchmark()
{
    BENCH_TASK_START("ignored");
    BENCH_TASK_STOP();
    {
        BENCH_TASK_SCOPED("ignored");
    }
    EXPECT_CALLS("");
}

static void values()
{
    BENCH_PARAMETER("text", std::string("a b"));
    BENCH_PARAMETER("literal", "c");
    BENCH_PARAMETER("long", 12L);
    BENCH_PARAMETER("double", 0.1);
    EXPECT_CALLS("parameter(text,a b) parameter(literal,c) parameter(long,12) parameter(double,0.1)");
    BENCH_RESULT("int", -3);
    BENCH_RESULT("size", sizeof(char) * 7);
    BENCH_RESULT("float", 2.5f);
    BENCH_RESULT("flag", true);
    BENCH_RESULT("character", 'x');
    BENCH_RESULT(std::string("third"), 1.0 / 3);
    EXPECT_CALLS("result(int,-3) result(size,7) result(float,2.5) result(flag,true) result(character,x) "
                 "result(third,0.33333333333333331)");
}

static void reports()
{
    mock_report("<bench/>\n", "<bench/>\n");
    std::ostringstream stream;
    BENCH_DUMP(stream, bench::Options());
    EXPECT(stream.str() == "<bench/>\n");
    EXPECT_CALLS("report(2,2,3) report(2,2,3)");
    BENCH_PRINT(bench::Options(bench::Options::VE_NORMAL, bench::Options::FO_TEXT, 0));
    EXPECT_CALLS("report(2,0,0) report(2,0,0)");
    BENCH_SAVE(std::string("saved.xml"), bench::Options(bench::Options::VE_FULL, bench::Options::FO_DOT));
    EXPECT_CALLS("report(3,1,3) report(3,1,3)");
    std::ifstream saved("saved.xml");
    std::string line;
    EXPECT(std::getline(saved, line) && line == "<bench/>");
    std::remove("saved.xml");
    std::ostringstream complaint;
    std::streambuf *const cerr = std::cerr.rdbuf(complaint.rdbuf());
    BENCH_SAVE("no such folder/x", bench::Options());
    std::cerr.rdbuf(cerr);
    EXPECT(complaint.str() == "bench: cannot write no such folder/x\n");
    mock_reset();
}

static void by_id()
{
    const bench::TaskId id = bench::task_id("numbered");
    BENCH_TASK_START(id);
    BENCH_TASK_STOP();
    {
        BENCH_TASK_SCOPED(id);
    }
    EXPECT_CALLS("task(numbered)");
    BENCH_START("ids", "");
    BENCH_TASK_START(id);
    BENCH_TASK_STOP();
    {
        BENCH_TASK_SCOPED(id);
    }
    BENCH_STOP();
    EXPECT_CALLS("bench_start(ids,) start(numbered) stop enter(numbered)=4 leave(4) bench_stop");
}

static void switches()
{
    BENCH_START("s", "");
    BENCH_ENABLE_TIMER(false);
    BENCH_TASK_START("off");
    BENCH_ENABLE_TIMER(true);
    BENCH_TASK_STOP();
    BENCH_TASK_START("on");
    BENCH_TASK_STOP();
    BENCH_ENABLE_MEMPLOT(false);
    BENCH_STOP();
    EXPECT_CALLS("bench_start(s,) start(ignored) stop start_named(on) stop set_points(0) bench_stop");
    BENCH_ENABLE_TIMER(false);
    BENCH_TASK_START("outside");
    BENCH_ENABLE_TIMER(true);
    EXPECT_CALLS("");
}

static void arguments()
{
    char program[] = "program", option[] = "--option";
    char *given[] = {program, option, 0};
    int count = 2;
    EXPECT(BENCH_PARSE_ARGUMENTS(count, given) && count == 1);
    EXPECT(!BENCH_PARSE_ARGUMENTS(count, given));
    EXPECT(std::string(BENCH_ARGUMENTS_HELP()) == "help\n");
    EXPECT_CALLS("arguments(2,program) arguments(1,program) arguments_help");
}

static void across_benchmarks()
{
    BENCH_START("one", "");
    {
        BENCH_TASK_SCOPED("left behind");
        BENCH_STOP();
        BENCH_START("two", "");
    }
    EXPECT_CALLS("bench_start(one,) task(left behind) enter(left behind)=2 bench_stop bench_start(two,)");
    {
        BENCH_TASK_SCOPED("while started again");
        BENCH_START("three", "");
    }
    BENCH_STOP();
    EXPECT_CALLS("task(while started again) enter(while started again)=3 bench_start(three,) bench_stop");
}

int main()
{
    outside_of_a_benchmark();
    BENCH_START("name", std::string("about"));
    BENCH_TASK_START("first");
    BENCH_TASK_START(std::string("second"));
    BENCH_TASK_STOP();
    BENCH_MEMPLOT("grown");
    EXPECT_CALLS("bench_start(name,about) start_named(first) start_named(second) stop point(grown)");
    try {
        scoped("in a scope");
    } catch (const std::runtime_error &) {
    }
    EXPECT_CALLS("task(in a scope) enter(in a scope)=1 leave(1)");
    values();
    reports();
    BENCH_STOP();
    EXPECT_CALLS("bench_stop");
    outside_of_a_benchmark();
    across_benchmarks();
    by_id();
    switches();
    arguments();

    BENCH_START("again", "and again");
    BENCH_PARAMETER("n", 1);
    BENCH_STOP();
    mock_reset();
    bench::restart();
    EXPECT_CALLS("bench_start(again,and again) parameter(n,1)");
    EXPECT(bench::Options::get_verbosity(-1) == bench::Options::VE_NONE);
    EXPECT(bench::Options::get_verbosity(9) == bench::Options::VE_FULL);
}
