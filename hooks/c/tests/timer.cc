// The timer of CBS counts tasks and adds times up.
#include <cbs/bench/timer.hh>

#include "mock_runtime.h"

static timer::Timer clock_;

static void recursive(int depth)
{
    const timer::ScopedTimer scope(clock_, "recursive");
    if (depth > 0)
        recursive(depth - 1);
}

static bool has(const std::string &text, const std::string &part)
{
    if (text.find(part) == std::string::npos)
        fprintf(stderr, "%s is not in\n%s\n", part.c_str(), text.c_str());
    return text.find(part) != std::string::npos;
}

static std::string dumped(const timer::Timer &timer)
{
    std::ostringstream text;
    timer.dump(text);
    return text.str();
}

static void times()
{
    using timer::TimeVal;
    EXPECT(TimeVal(1.5) + TimeVal(0.75) == TimeVal(2.25));
    EXPECT((TimeVal(1) - TimeVal(0.25)).to_ms() == 750);
    EXPECT((TimeVal(0.25) - TimeVal(1)).us() == -750000);
    EXPECT(TimeVal(3) / 2 == TimeVal(1.5));
    std::ostringstream text;
    text << TimeVal(90) << ' ' << TimeVal(0.0125);
    EXPECT(text.str() == "1.500m 12.500ms");
}

int main()
{
    times();
    clock_.start();
    recursive(3);
    const unsigned id = clock_.task("quoted \"<name>\"");
    EXPECT(clock_.task("quoted \"<name>\"") == id);
    clock_.push(id);
    EXPECT(clock_.current_task() == "quoted \"<name>\"");
    clock_.push("left running");
    clock_.stop();
    EXPECT(clock_.total_calls() == 7);
    const std::string xml = dumped(clock_);
    EXPECT(has(xml, "id=\"1\" name=\"recursive\" calls=\"4\" recursiveCalls=\"3\""));
    EXPECT(has(xml, "name=\"quoted &quot;&lt;name&gt;&quot;\" calls=\"1\""));
    EXPECT(has(xml, "<call source=\"0\" target=\"1\" count=\"1\">"));
    EXPECT(has(xml, "<call source=\"1\" target=\"1\" count=\"3\">"));
    EXPECT(has(xml, "<call source=\"2\" target=\"3\" count=\"1\">"));
    EXPECT(clock_.time_wall() >= 0 && clock_.time() >= 0);

    const timer::Timer twice = clock_ + clock_;
    EXPECT(has(dumped(twice), "name=\"recursive\" calls=\"8\""));
    EXPECT(!(twice < clock_));
    std::ostringstream dot, text;
    clock_.export_dot(dot, timer::VERBOSE_MINIMAL);
    EXPECT(has(dot.str(), "t1 -> t1 [label=\"calls 3\"]"));
    EXPECT(has(dot.str(), "quoted \\\"<name>\\\""));
    clock_.print(text);
    EXPECT(has(text.str(), "3") && has(text.str(), "recursive -> recursive"));

    // Stops without starts, and tasks without a running timer, are told and change nothing.
    std::ostringstream complaint;
    std::streambuf *const cerr = std::cerr.rdbuf(complaint.rdbuf());
    clock_.pop();
    clock_.push("too late");
    std::cerr.rdbuf(cerr);
    EXPECT(has(complaint.str(), "no task runs"));
    EXPECT(clock_.total_calls() == 7);
}
