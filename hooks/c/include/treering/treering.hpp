// Treering for C++17: measure the tasks of a program.
//
//     #include <treering/treering.hpp>
//
//     void assemble() { TREERING_FUNCTION(); ... { TREERING_SCOPE("rows"); ... } }
//
// Link with -ltreering. With TREERING_DISABLE defined, the macros are nothing, the functions are
// empty, and nothing needs to be linked. What every function means is told in treering.h.
#ifndef TREERING_TREERING_HPP
#define TREERING_TREERING_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <treering/treering.h>

namespace treering {

/// The kind of profile.
enum class Profiler : int {
    off = TREERING_OFF,
    call_graph = TREERING_CALL_GRAPH,
    flat = TREERING_FLAT,
    count = TREERING_COUNT,
};

/// How much a report holds.
enum class Verbosity : int {
    none = TREERING_REPORT_NONE,
    minimal = TREERING_REPORT_MINIMAL,
    normal = TREERING_REPORT_NORMAL,
    full = TREERING_REPORT_FULL,
};

/// In which format a report is.
enum class Format : int {
    text = TREERING_FORMAT_TEXT,
    dot = TREERING_FORMAT_DOT,
    xml = TREERING_FORMAT_XML,
    gnuplot = TREERING_FORMAT_GNUPLOT,
};

/// A task. Looks its name up when it is made, so make it once: it is as cheap to copy as a number.
class Task {
public:
    TREERING_UNREPORTED explicit Task(const char *name) noexcept : id_(treering_task(name)) {}
    TREERING_UNREPORTED explicit Task(const std::string &name) noexcept : Task(name.c_str()) {}
    TREERING_UNREPORTED Task(const char *name, const char *file, std::uint32_t line) noexcept
        : id_(treering_task_at(name, file, line))
    {
    }

    [[nodiscard]] TREERING_UNREPORTED std::uint32_t id() const noexcept { return id_; }

private:
    std::uint32_t id_;
};

/// A place in the source, which looks its task up when it is first passed while recording.
struct Site {
    const char *name;
    const char *file;
    std::uint32_t line;
    std::uint32_t known = 0;
};

/// An activation of a task: from when it is made until it is destroyed, by an exception too.
class Scope {
public:
    TREERING_UNREPORTED explicit Scope(Task task) noexcept
        : token_(treering_is_on() ? treering_enter(task.id()) : 0)
    {
    }
    TREERING_UNREPORTED explicit Scope(Site &site) noexcept
        : token_(treering_enter_site(&site.known, site.name, site.file, site.line))
    {
    }
    /// Looks the name up each time.
    TREERING_UNREPORTED explicit Scope(const char *name) noexcept : Scope(named(name)) {}
    TREERING_UNREPORTED explicit Scope(const std::string &name) noexcept : Scope(named(name.c_str())) {}
    TREERING_UNREPORTED ~Scope() { treering_leave_scope(&token_); }

    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

    /// Tells the size of the arguments of this activation.
    TREERING_UNREPORTED void argument_size(std::uint64_t size) const noexcept
    {
        if (token_ != 0)
            treering_argument_size(token_, size);
    }

private:
    struct Token {
        std::uint64_t token;
    };
    TREERING_UNREPORTED explicit Scope(Token token) noexcept : token_(token.token) {}
    TREERING_UNREPORTED static Token named(const char *name) noexcept
    {
        return Token{treering_is_on() ? treering_enter(treering_task(name)) : 0};
    }

    std::uint64_t token_;
};

/// An activation of a task in which no other is entered, which costs less: see treering_leaf.
class Leaf {
public:
    TREERING_UNREPORTED explicit Leaf(Task task) noexcept
        : leaf_(treering_is_on() ? treering_leaf_enter(task.id()) : treering_leaf{})
    {
    }
    /// All calls are counted, one in `timed_one_in` is timed, none for 0.
    TREERING_UNREPORTED Leaf(Site &site, std::uint32_t timed_one_in) noexcept
        : leaf_(treering_leaf_enter_site(&site.known, site.name, site.file, site.line, timed_one_in))
    {
    }
    TREERING_UNREPORTED ~Leaf() { treering_leave_leaf(&leaf_); }

    Leaf(const Leaf &) = delete;
    Leaf &operator=(const Leaf &) = delete;

private:
    treering_leaf leaf_;
};

/// Sets the profiler and starts recording; false where the library does not know it.
inline TREERING_UNREPORTED bool set_profiler(Profiler profiler) noexcept
{
    return treering_set_profiler(static_cast<int>(profiler)) == 0;
}

/// Stops recording.
inline TREERING_UNREPORTED void clear_profiler() noexcept { treering_clear_profiler(); }

/// Writes the profile now; false where it could not be written.
inline TREERING_UNREPORTED bool flush() noexcept { return treering_flush() == 0; }

/// Adds a point to the memory plot.
inline TREERING_UNREPORTED void point(std::string_view description) noexcept
{
    treering_point(description.data(), description.size());
}

/// Marks the moment with a name, for `treering record` where that has started the program.
inline TREERING_UNREPORTED void mark(std::string_view name) noexcept { treering_mark(name.data(), name.size()); }

/// Switches points of the memory plot on or off.
inline TREERING_UNREPORTED void set_points(bool on) noexcept { treering_set_points(on); }

/// Tells a parameter of the run.
inline TREERING_UNREPORTED void parameter(std::string_view name, std::string_view value) noexcept
{
    treering_parameter(name.data(), name.size(), value.data(), value.size());
}

/// Tells a result of the run.
inline TREERING_UNREPORTED void result(std::string_view name, std::string_view value) noexcept
{
    treering_result(name.data(), name.size(), value.data(), value.size());
}

/// Starts a benchmark.
inline TREERING_UNREPORTED void bench_start(std::string_view name, std::string_view description) noexcept
{
    treering_bench_start(name.data(), name.size(), description.data(), description.size());
}

/// Stops the benchmark.
inline TREERING_UNREPORTED void bench_stop() noexcept { treering_bench_stop(); }

/// Takes the options for reports out of the arguments of main, and remembers them; false where one is
/// wrong, which standard error tells.
inline TREERING_UNREPORTED bool bench_arguments(int &count, char **arguments) noexcept
{
    return treering_bench_arguments(&count, arguments) == 0;
}

/// Lines about these options for the help of the program.
inline TREERING_UNREPORTED std::string bench_arguments_help() { return treering_bench_arguments_help(); }

/// The report of the benchmark as it is now. `contents` is a sum of TREERING_WITH_CALLGRAPH,
/// TREERING_WITH_MEMPLOT and TREERING_WITHOUT_SUMMARY.
inline TREERING_UNREPORTED std::string report(Verbosity verbosity, Format format, int contents)
{
    const auto write = [=](char *buffer, std::size_t capacity) {
        return treering_bench_report(static_cast<int>(verbosity), static_cast<int>(format), contents, buffer,
                                     capacity);
    };
    std::string text;
    // Other threads may make it longer between two calls.
    std::size_t size = write(nullptr, 0);
    while (size > text.size()) {
        text.resize(size + 256);
        size = write(text.data(), text.size());
    }
    text.resize(size);
    return text;
}

} // namespace treering

// TREERING_SCOPE(name) makes the rest of the enclosing block an activation of the task with that
// name, which must be the same each time the line is reached; TREERING_SCOPE_NAMED looks it up each
// time. TREERING_FUNCTION() takes the name of the function. Several may stand in one block.
// TREERING_LEAF(name, n) is for a block in which no other scope is entered and which runs very often:
// all of its calls are counted, one in n is timed, none for 0.
#define TREERING_HAS_SCOPE 1
#ifdef TREERING_DISABLE
#define TREERING_SCOPE(name) static_cast<void>(sizeof(name))
#define TREERING_SCOPE_NAMED(name) static_cast<void>(sizeof(name))
#define TREERING_LEAF(name, n) (static_cast<void>(sizeof(name)), static_cast<void>(n))
#else
#define TREERING_SCOPE_(name, n)                                                                     \
    static ::treering::Site TREERING_JOIN(treering_site_, n){name, __FILE__, __LINE__};              \
    const ::treering::Scope TREERING_JOIN(treering_scope_, n) { TREERING_JOIN(treering_site_, n) }
#define TREERING_SCOPE(name) TREERING_SCOPE_(name, TREERING_UNIQUE)
#define TREERING_LEAF_(name, timed_one_in, n)                                                        \
    static ::treering::Site TREERING_JOIN(treering_site_, n){name, __FILE__, __LINE__};              \
    const ::treering::Leaf TREERING_JOIN(treering_leaf_, n) { TREERING_JOIN(treering_site_, n), timed_one_in }
#define TREERING_LEAF(name, n) TREERING_LEAF_(name, n, TREERING_UNIQUE)
#define TREERING_SCOPE_NAMED(name)                                                                   \
    const ::treering::Scope TREERING_JOIN(treering_scope_, TREERING_UNIQUE) { name }
#endif
#define TREERING_FUNCTION() TREERING_SCOPE(__func__)

#endif
