// The timer of CBS: an object that times nested tasks, apart from any benchmark.
//
// It stands on its own: it measures with the clocks of the system and links with nothing. One
// thread may use it at a time. Left out of CBS's: the graph of the Boost library and its writers,
// and marks and entries of cycles; use the benchmark of bench.hh for these.
#ifndef TREERING_CBS_BENCH_TIMER_HH
#define TREERING_CBS_BENCH_TIMER_HH

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <cbs/bench/internal/time.hh>

namespace timer {

/// How much is written.
enum verbose_degree { VERBOSE_NONE, VERBOSE_MINIMAL, VERBOSE_NORMAL, VERBOSE_MAXIMAL };

/// The degree with that number, from 0; the nearest one where there is none.
inline verbose_degree get_verbose_degree(int i)
{
    return i <= 0 ? VERBOSE_NONE : i == 1 ? VERBOSE_MINIMAL : i == 2 ? VERBOSE_NORMAL : VERBOSE_MAXIMAL;
}

/// Times nested tasks and writes their call graph.
class Timer {
public:
    Timer() : is_running_(false), measures_(0) {}

    /// The id of the task with that name, which is made if it is new.
    unsigned int task(const std::string &name)
    {
        const std::pair<Ids::iterator, bool> known = ids_.insert(Ids::value_type(name, unsigned(tasks_.size())));
        if (known.second)
            tasks_.push_back(Task(name));
        return known.first->second;
    }

    /// The name of the task that runs.
    std::string current_task() const { return stack_.empty() ? "" : tasks_[stack_.back().task].name; }

    /// Forgets everything and starts.
    void start()
    {
        clear();
        is_running_ = true;
        push(task("_program"));
    }

    /// Stops every task that still runs, and the timer.
    void stop()
    {
        while (stack_.size() > 1)
            pop();
        if (!stack_.empty())
            end_program();
        is_running_ = false;
    }

    void clear() { *this = Timer(); }

    void push(const std::string &name) { push(task(name)); }

    void push(const unsigned int id)
    {
        if (!is_running_ || id >= tasks_.size())
            return complain("push: no such task, or the timer does not run");
        ++tasks_[id].depth;
        stack_.push_back(Frame(id));
        stack_.back().start = TimeStamp::now();
    }

    /// Stops the task that was started last.
    void pop()
    {
        if (stack_.size() < 2)
            return complain("pop: no task runs");
        const TimeStamp lap = TimeStamp::now() - stack_.back().start;
        const Frame frame = stack_.back();
        stack_.pop_back();
        add(frame, lap);
    }

    /// The same, if that is the task named.
    void pop(const unsigned int id)
    {
        if (stack_.size() < 2 || stack_.back().task != id)
            return complain("pop: another task runs");
        pop();
    }

    void pop(const std::string &name) { pop(task(name)); }

    /// The CPU time of the whole and its parts, children that ended included, in milliseconds.
    long time() const { return program().total.cpu().to_ms(); }
    long time_user() const { return program().total.user.to_ms(); }
    long time_system() const { return program().total.system.to_ms(); }
    long time_children_user() const { return program().total.children_user.to_ms(); }
    long time_children_system() const { return program().total.children_system.to_ms(); }
    long time_wall() const { return program().total.wall.to_ms(); }

    /// How many activations were measured, that of the whole included once it has stopped.
    unsigned total_calls() const { return measures_; }

    /// Compares the CPU times of the whole.
    bool operator<(const Timer &other) const { return program().total.cpu() < other.program().total.cpu(); }

    /// Adds calls and times, task by task.
    Timer &operator+=(const Timer &other)
    {
        std::vector<unsigned> ids;
        for (std::size_t at = 0; at < other.tasks_.size(); ++at) {
            ids.push_back(task(other.tasks_[at].name));
            tasks_[ids[at]].add(other.tasks_[at]);
        }
        for (Calls::const_iterator it = other.calls_.begin(); it != other.calls_.end(); ++it)
            calls_[Arc(ids[it->first.first], ids[it->first.second])].add(it->second);
        measures_ += other.measures_;
        return *this;
    }
    Timer operator+(const Timer &other) const { return Timer(*this) += other; }

    /// Divides times; calls stay, so that averages are those of the divided times.
    Timer &operator/=(unsigned divisor)
    {
        for (std::size_t at = 0; at < tasks_.size(); ++at) {
            tasks_[at].self /= divisor;
            tasks_[at].total /= divisor;
        }
        for (Calls::iterator it = calls_.begin(); it != calls_.end(); ++it)
            it->second.self /= divisor;
        return *this;
    }
    Timer operator/(unsigned divisor) const { return Timer(*this) /= divisor; }

    /// Writes tasks, from normal on also calls.
    std::ostream &print(std::ostream &o, verbose_degree degree = VERBOSE_NORMAL) const;
    /// Writes the graph for Graphviz; the greater the ratio, the darker a charge is drawn.
    std::ostream &export_dot(std::ostream &o, verbose_degree degree = VERBOSE_NORMAL, double ratio = 1) const;
    /// Writes one XML element with everything; times are in milliseconds.
    std::ostream &dump(std::ostream &o) const;

private:
    struct Task {
        std::string name;
        unsigned long calls, recursive_calls, depth;
        TimeStamp self, total;

        explicit Task(const std::string &name_) : name(name_), calls(0), recursive_calls(0), depth(0) {}
        void add(const Task &other)
        {
            calls += other.calls;
            recursive_calls += other.recursive_calls;
            self += other.self;
            total += other.total;
        }
    };
    struct Call {
        unsigned long count;
        TimeStamp self;

        Call() : count(0) {}
        void add(const Call &other)
        {
            count += other.count;
            self += other.self;
        }
    };
    struct Frame {
        unsigned int task;
        TimeStamp start, children;

        explicit Frame(unsigned int task_) : task(task_) {}
    };
    typedef std::map<std::string, unsigned int> Ids;
    typedef std::pair<unsigned int, unsigned int> Arc;
    typedef std::map<Arc, Call> Calls;

    static void complain(const char *what) { std::cerr << "timer: " << what << std::endl; }

    static std::string replaced(const std::string &text, const char *characters, const char *const *by)
    {
        std::string out;
        for (std::size_t at = 0; at < text.size(); ++at) {
            const std::size_t found = std::string(characters).find(text[at]);
            out += found == std::string::npos ? std::string(1, text[at]) : std::string(by[found]);
        }
        return out;
    }

    void add(const Frame &frame, const TimeStamp &lap)
    {
        Frame &caller = stack_.back();
        caller.children += lap;
        Call call;
        call.count = 1;
        call.self = lap - frame.children;
        calls_[Arc(caller.task, frame.task)].add(call);
        Task &task = tasks_[frame.task];
        ++task.calls;
        task.recursive_calls += caller.task == frame.task;
        task.self += call.self;
        if (--task.depth == 0)
            task.total += lap;
        ++measures_;
    }

    void end_program()
    {
        Task &root = tasks_[stack_.back().task];
        root.calls = 1;
        ++measures_;
        root.total = TimeStamp::now() - stack_.back().start;
        root.self = root.total - stack_.back().children;
        stack_.clear();
    }

    const Task &program() const
    {
        static const Task none("");
        return tasks_.empty() ? none : tasks_[0];
    }

    double charge(const TimeStamp &time) const
    {
        const double whole = program().total.cpu().us();
        return whole > 0 ? 100 * time.cpu().us() / whole : 0;
    }

    static void write_time(std::ostream &o, const char *name, const TimeStamp &time, double charge)
    {
        o << "<time name=\"" << name << "\" cpu=\"" << time.cpu().ms() << "\" wall=\"" << time.wall.ms()
          << "\" user=\"" << time.user.ms() << "\" system=\"" << time.system.ms() << "\" children_user=\""
          << time.children_user.ms() << "\" children_system=\"" << time.children_system.ms() << "\" charge=\""
          << charge << "\" />";
    }

    bool is_running_;
    unsigned measures_;
    Ids ids_;
    std::vector<Task> tasks_;
    std::vector<Frame> stack_;
    Calls calls_;
};

inline std::ostream &Timer::print(std::ostream &o, verbose_degree degree) const
{
    if (degree == VERBOSE_NONE)
        return o;
    o << "[Task list:]\n\ncharge %, total ms, self ms, calls, name\n";
    for (std::size_t at = 0; at < tasks_.size(); ++at) {
        const Task &task = tasks_[at];
        o << std::setw(7) << charge(task.self) << ' ' << std::setw(10) << task.total.cpu().ms() << ' '
          << std::setw(10) << task.self.cpu().ms() << ' ' << std::setw(8) << task.calls << ' ' << task.name << '\n';
    }
    if (degree < VERBOSE_NORMAL)
        return o << std::endl;
    o << "\n[Call graph:]\n\ncalls, self ms, caller -> called\n";
    for (Calls::const_iterator it = calls_.begin(); it != calls_.end(); ++it)
        o << std::setw(8) << it->second.count << ' ' << std::setw(10) << it->second.self.cpu().ms() << ' '
          << tasks_[it->first.first].name << " -> " << tasks_[it->first.second].name << '\n';
    return o << std::endl;
}

inline std::ostream &Timer::export_dot(std::ostream &o, verbose_degree degree, double ratio) const
{
    static const char *const escapes[] = {"\\\\", "\\\"", " "};
    o << "digraph timer {\nnode [shape=box, style=filled];\n";
    for (std::size_t at = 0; at < tasks_.size(); ++at) {
        const Task &task = tasks_[at];
        const double part = std::min(1.0, charge(task.self) * ratio / 100);
        o << 't' << at << " [label=\"" << replaced(task.name, "\\\"\n", escapes) << "\\lself " << charge(task.self)
          << " %\\lcalls " << task.calls << "\\l\", fillcolor=\"0.13 " << part << " 1.0\"];\n";
    }
    for (Calls::const_iterator it = calls_.begin(); it != calls_.end(); ++it) {
        o << 't' << it->first.first << " -> t" << it->first.second << " [label=\"calls " << it->second.count;
        if (degree >= VERBOSE_NORMAL)
            o << "\\lself " << it->second.self.cpu().ms() << " ms\\l";
        o << "\"];\n";
    }
    return o << "}" << std::endl;
}

inline std::ostream &Timer::dump(std::ostream &o) const
{
    static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;"};
    o << "<timer>\n  ";
    write_time(o, "total", program().total, 100);
    o << "\n  <taskList>\n";
    for (std::size_t at = 0; at < tasks_.size(); ++at) {
        const Task &task = tasks_[at];
        o << "    <task id=\"" << at << "\" name=\"" << replaced(task.name, "&<>\"\n", escapes) << "\" calls=\""
          << task.calls << "\" recursiveCalls=\"" << task.recursive_calls << "\">\n      ";
        write_time(o, "total", task.total, charge(task.total));
        o << "\n      ";
        write_time(o, "self", task.self, charge(task.self));
        o << "\n    </task>\n";
    }
    o << "  </taskList>\n  <callList>\n";
    for (Calls::const_iterator it = calls_.begin(); it != calls_.end(); ++it) {
        o << "    <call source=\"" << it->first.first << "\" target=\"" << it->first.second << "\" count=\""
          << it->second.count << "\">\n      ";
        write_time(o, "self", it->second.self, charge(it->second.self));
        o << "\n    </call>\n";
    }
    return o << "  </callList>\n</timer>" << std::endl;
}

/// A task of a timer that runs from when this is made until it is destroyed.
class ScopedTimer {
public:
    ScopedTimer(Timer &timer, const unsigned int id) : timer_(&timer) { timer.push(id); }
    ScopedTimer(Timer &timer, const std::string &name) : timer_(&timer) { timer.push(name); }
    /// Stops the task that was started last, whichever that is.
    ~ScopedTimer() { timer_->pop(); }

private:
    ScopedTimer(const ScopedTimer &);
    ScopedTimer &operator=(const ScopedTimer &);

    Timer *timer_;
};

} // namespace timer

#endif
