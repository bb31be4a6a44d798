// The benchmark interface of CBS (C++ benchmarking suite, 2009) on top of Treering. Programs
// written for CBS compile unchanged and are linked with -ltreering instead of -lbench.
//
// Differences: a report may be asked for at any time, as often as one likes, and shows the figures
// until then; tasks may be started and stopped in any thread; a scoped task ends itself and what
// was started in it, also when starts and stops do not balance; values of any number type are
// taken. Compiles as C++98 and later.
#ifndef TREERING_CBS_BENCH_BENCH_HH
#define TREERING_CBS_BENCH_BENCH_HH

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#if __cplusplus >= 201103L
#include <atomic>
#include <mutex>
#define TREERING_BENCH_NOEXCEPT_ noexcept
#else
#define TREERING_BENCH_NOEXCEPT_ throw()
#endif
#if __cplusplus >= 201703L
#include <string_view>
#endif

#include <treering/treering.h>

namespace bench {

/// The form and the parts of a report, for print, dump and save.
struct Options {
    /// How much is written.
    enum Verbosity { VE_NONE, VE_MINIMAL, VE_NORMAL, VE_FULL };
    /// In which format. DOT has the call graph, without it the memory plot; gnuplot the memory plot only.
    enum Format { FO_TEXT, FO_DOT, FO_XML, FO_GNUPLOT };
    /// The parts, as a sum.
    enum Contents { CO_CALLGRAPH = 0x1, CO_MEMPLOT = 0x2, CO_NOSUMMARY = 0x4 };

    /// Everything as XML, if not told otherwise.
    TREERING_UNREPORTED Options(Verbosity verbosity_ = VE_NORMAL, Format format_ = FO_XML,
            int contents_ = CO_CALLGRAPH | CO_MEMPLOT)
        : verbosity(verbosity_), format(format_), contents(contents_)
    {
    }

    /// The verbosity with that number, from 0; the nearest one where there is none.
    TREERING_UNREPORTED static Verbosity get_verbosity(int i)
    {
        return i <= 0 ? VE_NONE : i == 1 ? VE_MINIMAL : i == 2 ? VE_NORMAL : VE_FULL;
    }

    Verbosity verbosity;
    Format format;
    int contents;
};

/// Not for programs to use.
namespace detail {

typedef std::vector<std::pair<std::string, std::string> > Pairs;

/// The texts that restart() passes on again.
struct Known {
    std::string name, description;
    Pairs parameters, results;
};

/// The same, for the one thread that holds it. As C++98 knows no threads, it does not lock there.
class Memory {
public:
    TREERING_UNREPORTED Memory() { mutex().lock(); }
    TREERING_UNREPORTED ~Memory() { mutex().unlock(); }

    TREERING_UNREPORTED Known &known()
    {
        static Known known;
        return known;
    }

private:
    Memory(const Memory &);
    Memory &operator=(const Memory &);

#if __cplusplus >= 201103L
    typedef std::mutex Mutex;
#else
    struct Mutex {
        TREERING_UNREPORTED void lock() {}
        TREERING_UNREPORTED void unlock() {}
    };
#endif
    TREERING_UNREPORTED static Mutex &mutex()
    {
        static Mutex mutex;
        return mutex;
    }
};

#if __cplusplus >= 201103L
typedef std::atomic<unsigned long> Count;
#else
typedef volatile unsigned long Count;
#endif

/// How often a benchmark was started or stopped: odd while one runs.
inline TREERING_UNREPORTED Count &changes()
{
    static Count changes(0);
    return changes;
}

inline TREERING_UNREPORTED bool is_running() { return changes() % 2 == 1; }

/// 1 while tasks are not timed although a benchmark runs.
inline TREERING_UNREPORTED Count &timer_is_off()
{
    static Count off(0);
    return off;
}

/// Whether a task that is started is to be recorded. While the timer is off, it is started as one that is
/// not, so that the stop that belongs to it ends no other.
inline TREERING_UNREPORTED bool wants_start()
{
    if (!is_running())
        return false;
    if (timer_is_off() == 0)
        return true;
    treering_task_start(TREERING_IGNORED);
    return false;
}

inline TREERING_UNREPORTED void set_running(bool running)
{
    if (is_running() != running)
        changes() = changes() + 1;
    else if (running)
        changes() = changes() + 2;
}

/// A number as its shortest text that is read back as the same number, always with a point.
template <typename Number>
TREERING_UNREPORTED std::string text_of(Number number)
{
    for (int digits = 15;; digits += 2) {
        std::ostringstream text;
        text.imbue(std::locale::classic());
        text.precision(digits);
        text << number;
        std::istringstream back(text.str());
        back.imbue(std::locale::classic());
        Number read = Number();
        // No stream reads "inf" and "nan".
        if (digits >= 21 || !(back >> read) || read == number)
            return text.str();
    }
}

inline TREERING_UNREPORTED void tell_parameter(const std::string &name, const std::string &value)
{
    Memory().known().parameters.push_back(std::make_pair(name, value));
    treering_parameter(name.data(), name.size(), value.data(), value.size());
}

inline TREERING_UNREPORTED void tell_result(const std::string &name, const std::string &value)
{
    Memory().known().results.push_back(std::make_pair(name, value));
    treering_result(name.data(), name.size(), value.data(), value.size());
}


inline TREERING_UNREPORTED std::string report(const Options &options)
{
    std::string text;
    const int verbosity = options.verbosity, format = options.format;
    std::size_t size = treering_bench_report(verbosity, format, options.contents, 0, 0);
    // Other threads may make it longer between two calls.
    while (size > text.size()) {
        text.resize(size + 256);
        size = treering_bench_report(verbosity, format, options.contents, &text[0], text.size());
    }
    text.resize(size);
    return text;
}

} // namespace detail

/// Starts a benchmark. What the one before recorded is forgotten.
inline TREERING_UNREPORTED void start(const std::string &name, const std::string &description)
{
    detail::Known fresh;
    fresh.name = name;
    fresh.description = description;
    detail::Memory().known() = fresh;
    treering_bench_start(name.data(), name.size(), description.data(), description.size());
    detail::set_running(true);
}

/// Stops the benchmark. Tasks are not recorded until the next start.
inline TREERING_UNREPORTED void stop()
{
    detail::set_running(false);
    treering_bench_stop();
}

/// Starts the benchmark again under the same name, with the parameters and results it has.
inline TREERING_UNREPORTED void restart()
{
    const detail::Known known = detail::Memory().known();
    start(known.name, known.description);
    for (std::size_t at = 0; at < known.parameters.size(); ++at)
        detail::tell_parameter(known.parameters[at].first, known.parameters[at].second);
    for (std::size_t at = 0; at < known.results.size(); ++at)
        detail::tell_result(known.results[at].first, known.results[at].second);
}

// parameter(name, value) and result(name, value) for texts and for every type of number.
#define TREERING_BENCH_VALUE_(Type, Text)                                                            \
    inline TREERING_UNREPORTED void parameter(const std::string &name, Type value)                   \
    {                                                                                                \
        detail::tell_parameter(name, Text);                                                          \
    }                                                                                                \
    inline TREERING_UNREPORTED void result(const std::string &name, Type value)                      \
    {                                                                                                \
        detail::tell_result(name, Text);                                                             \
    }
#define TREERING_BENCH_NUMBER_(Type) TREERING_BENCH_VALUE_(Type, detail::text_of(value))
/// Tells a parameter or a result of the benchmark, before or after stop(); the last value counts.
TREERING_BENCH_VALUE_(const std::string &, value)
TREERING_BENCH_VALUE_(const char *, value == 0 ? std::string() : std::string(value))
TREERING_BENCH_VALUE_(bool, value ? "true" : "false")
TREERING_BENCH_VALUE_(char, std::string(1, value))
TREERING_BENCH_NUMBER_(int)
TREERING_BENCH_NUMBER_(unsigned)
TREERING_BENCH_NUMBER_(long)
TREERING_BENCH_NUMBER_(unsigned long)
TREERING_BENCH_NUMBER_(float)
TREERING_BENCH_NUMBER_(double)
TREERING_BENCH_NUMBER_(long double)
#if __cplusplus >= 201103L
TREERING_BENCH_NUMBER_(long long)
TREERING_BENCH_NUMBER_(unsigned long long)
#endif
#if __cplusplus >= 201703L
TREERING_BENCH_VALUE_(std::string_view, std::string(value))
#endif
#undef TREERING_BENCH_NUMBER_
#undef TREERING_BENCH_VALUE_

/// A task by number.
typedef uint32_t TaskId;

/// The id of the task with that name, which stays the same for the whole run: got once, it saves the
/// look-up at each start. A name ends at its first zero byte.
inline TREERING_UNREPORTED TaskId task_id(const std::string &name) { return treering_task(name.c_str()); }

/// Starts a task, if a benchmark runs.
inline TREERING_UNREPORTED void task_start(const std::string &name)
{
    if (detail::wants_start())
        treering_task_start_named(name.data(), name.size());
}

/// The same without a copy of the name.
inline TREERING_UNREPORTED void task_start(const char *name)
{
    if (detail::wants_start())
        treering_task_start_named(name, std::char_traits<char>::length(name));
}

/// The same by the id of the task.
inline TREERING_UNREPORTED void task_start(TaskId id)
{
    if (detail::wants_start())
        treering_task_start(id);
}

/// Stops the task that was started last, if a benchmark runs.
inline TREERING_UNREPORTED void task_stop()
{
    if (detail::is_running())
        treering_task_stop();
}

/// A task that runs from when this is made until it is destroyed, if a benchmark runs then.
///
/// It ends the activation that it started, and none when its benchmark is over or was started
/// again meanwhile. A name ends at its first zero byte.
struct ScopedTask {
    TREERING_UNREPORTED ScopedTask(const std::string &name) : run_(0), token_(0) { begin(name.c_str()); }
    TREERING_UNREPORTED ScopedTask(const char *name) : run_(0), token_(0) { begin(name); }
    TREERING_UNREPORTED ScopedTask(TaskId id)
        : run_(detail::changes()), token_(is_wanted() ? treering_enter(id) : 0)
    {
    }
    TREERING_UNREPORTED ~ScopedTask()
    {
        if (token_ != 0 && run_ == detail::changes())
            treering_leave(token_);
    }

private:
    ScopedTask(const ScopedTask &);
    ScopedTask &operator=(const ScopedTask &);

    TREERING_UNREPORTED void begin(const char *name) TREERING_BENCH_NOEXCEPT_
    {
        run_ = detail::changes();
        if (is_wanted())
            token_ = treering_enter(treering_task(name));
    }

    TREERING_UNREPORTED bool is_wanted() const { return run_ % 2 == 1 && detail::timer_is_off() == 0; }

    unsigned long run_;
    uint64_t token_;
};

/// Switches the timer off or on, at any time, also between a start and its stop: tasks that are started
/// while it is off are not recorded, and belong to the task that runs. It is on at first.
inline TREERING_UNREPORTED void enable_timer(bool on) { detail::timer_is_off() = on ? 0 : 1; }

/// Switches the memory plot off or on, with the points that start and stop take. It is on at first,
/// unless the environment says TREERING_MEMPLOT=off; then it stays off.
inline TREERING_UNREPORTED void enable_memplot(bool on) { treering_set_points(on); }

/// Adds a point to the memory plot.
inline TREERING_UNREPORTED void memplot(const std::string &description)
{
    treering_point(description.data(), description.size());
}

/// Takes the options for reports out of the arguments of main, and remembers them: --report-time,
/// --export-time-xml and --export-time-dot.
///
/// The reports are written when the benchmark stops, or when the program ends while one runs.
/// False, after a line on standard error, where one of them is wrong; then all arguments stay.
inline TREERING_UNREPORTED bool parse_arguments(int &count, char **arguments)
{
    return treering_bench_arguments(&count, arguments) == 0;
}

/// Lines about these options for the help of the program.
inline TREERING_UNREPORTED std::string arguments_help() { return treering_bench_arguments_help(); }

/// Writes a report to a stream.
inline TREERING_UNREPORTED void dump(std::ostream &stream, Options options)
{
    stream << detail::report(options) << std::flush;
}

/// Writes a report to std::cout.
inline TREERING_UNREPORTED void print(Options options) { dump(std::cout, options); }

/// Writes a report to a file, which is replaced; says so on std::cerr if that was not possible.
inline TREERING_UNREPORTED void save(const std::string &filename, Options options)
{
    std::ofstream stream(filename.c_str(), std::ios::out | std::ios::binary);
    dump(stream, options);
    stream.close();
    if (!stream)
        std::cerr << "bench: cannot write " << filename << std::endl;
}

} // namespace bench

#endif
