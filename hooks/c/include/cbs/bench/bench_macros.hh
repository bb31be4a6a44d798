// The macros of CBS on top of Treering.
//
// BENCH_DISABLED or TREERING_DISABLE turns all of them into nothing, BENCH_CALLGRAPH_DISABLED the
// tasks, BENCH_MEMPLOT_DISABLED the memory plot.
#ifndef TREERING_CBS_BENCH_MACROS_HH
#define TREERING_CBS_BENCH_MACROS_HH

#if defined(BENCH_DISABLED) || defined(TREERING_DISABLE)
#define TREERING_BENCH_RUN_(Action) void(0)
#define TREERING_BENCH_VALUE_OF_(Value, Otherwise) (Otherwise)
#else
#include <cbs/bench/bench.hh>
#define TREERING_BENCH_RUN_(Action) Action
#define TREERING_BENCH_VALUE_OF_(Value, Otherwise) (Value)
#endif

#if defined(BENCH_DISABLED) || defined(TREERING_DISABLE) || defined(BENCH_CALLGRAPH_DISABLED)
#define TREERING_BENCH_TASK_(Action) void(0)
#else
#define TREERING_BENCH_TASK_(Action) Action
#endif

#if defined(BENCH_DISABLED) || defined(TREERING_DISABLE) || defined(BENCH_MEMPLOT_DISABLED)
#define TREERING_BENCH_PLOT_(Action) void(0)
#else
#define TREERING_BENCH_PLOT_(Action) Action
#endif

// The benchmark. Name and Description are texts, Value a text or a number.
#define BENCH_START(Name, Description) TREERING_BENCH_RUN_(bench::start(Name, Description))
#define BENCH_STOP() TREERING_BENCH_RUN_(bench::stop())
#define BENCH_PARAMETER(Name, Value) TREERING_BENCH_RUN_(bench::parameter(Name, Value))
#define BENCH_RESULT(Name, Value) TREERING_BENCH_RUN_(bench::result(Name, Value))

// Options for reports on the command line of the program, not of CBS: true unless one is wrong.
// BENCH_ARGUMENTS_HELP() is what --help says of them.
#define BENCH_PARSE_ARGUMENTS(Argc, Argv) TREERING_BENCH_VALUE_OF_(bench::parse_arguments(Argc, Argv), true)
#define BENCH_ARGUMENTS_HELP() TREERING_BENCH_VALUE_OF_(bench::arguments_help(), "")

// Tasks. Name is a text, or the number that bench::task_id(text) gives. At most one scoped task in a scope: it is a variable called bench_task.
#define BENCH_TASK_START(Name) TREERING_BENCH_TASK_(bench::task_start(Name))
#define BENCH_TASK_STOP() TREERING_BENCH_TASK_(bench::task_stop())
#define BENCH_TASK_SCOPED(Name) TREERING_BENCH_TASK_(bench::ScopedTask bench_task(Name))

// A point of the memory plot.
#define BENCH_MEMPLOT(Description) TREERING_BENCH_PLOT_(bench::memplot(Description))

// Switches one of them off and on while the program runs; On is true or false.
#define BENCH_ENABLE_TIMER(On) TREERING_BENCH_TASK_(bench::enable_timer(On))
#define BENCH_ENABLE_MEMPLOT(On) TREERING_BENCH_PLOT_(bench::enable_memplot(On))

// Reports: to std::cout, to a stream, to a file.
#define BENCH_PRINT(Options) TREERING_BENCH_RUN_(bench::print(Options))
#define BENCH_DUMP(Stream, Options) TREERING_BENCH_RUN_(bench::dump(Stream, Options))
#define BENCH_SAVE(Filename, Options) TREERING_BENCH_RUN_(bench::save(Filename, Options))

#endif
