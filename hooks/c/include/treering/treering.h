/* Treering: measure the tasks of a C program.
 *
 *     #include <treering/treering.h>
 *
 *     void assemble(void) { TREERING_FUNCTION(); ... { TREERING_SCOPE("rows"); ... } }
 *
 * Link with -ltreering. With TREERING_DISABLE defined, nothing of this file is compiled into the
 * program and nothing needs to be linked. C++ programs include <treering/treering.hpp>.
 *
 * All functions may be called from any thread at any time, also when nothing is being recorded;
 * none ends or fails the program. Names and texts may hold any bytes; a null pointer with a length
 * of 0 is an empty text. What was used wrongly, such as a stop without a start, is told in the
 * report.
 */
#ifndef TREERING_TREERING_H
#define TREERING_TREERING_H

#include <stddef.h>
#include <stdint.h>

/* Where the compiler reports all functions (-finstrument-functions), those of the headers are not to be
 * reported: the end of one would end the task that it has started. */
#if defined(__GNUC__) || defined(__clang__)
#define TREERING_UNREPORTED __attribute__((no_instrument_function))
#else
#define TREERING_UNREPORTED
#endif
#define TREERING_INLINE static inline TREERING_UNREPORTED

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of profilers, for treering_set_profiler. */
enum {
    /* Record nothing: an enter costs one load and one branch. */
    TREERING_OFF = 0,
    /* A tree of tasks: callers and callees, calls, self and total costs. */
    TREERING_CALL_GRAPH = 1,
    /* A record for each task, without callers. */
    TREERING_FLAT = 2,
    /* A tree of calls without times. */
    TREERING_COUNT = 3
};

/* Kinds of functions of an interpreted language. */
enum {
    TREERING_KIND_FUNCTION = 4,  /* written in the language */
    TREERING_KIND_BUILTIN = 5,   /* brought by the interpreter */
    TREERING_KIND_OPERATOR = 6,
    TREERING_KIND_SCRIPT = 7,    /* a file of statements */
    TREERING_KIND_EXTENSION = 8, /* compiled code that the interpreter has loaded */
    TREERING_KIND_ANONYMOUS = 9  /* without a name, told by the place where it was made */
};

/* How much a report holds. */
enum {
    TREERING_REPORT_NONE = 0,    /* the summary only */
    TREERING_REPORT_MINIMAL = 1, /* also the list of tasks and the memory plot */
    TREERING_REPORT_NORMAL = 2,  /* also cycles and calls */
    TREERING_REPORT_FULL = 3     /* also every kind of time */
};

/* In which format a report is. */
enum { TREERING_FORMAT_TEXT = 0, TREERING_FORMAT_DOT = 1, TREERING_FORMAT_XML = 2, TREERING_FORMAT_GNUPLOT = 3 };

/* The parts of a report: the sum of these. */
enum { TREERING_WITH_CALLGRAPH = 1, TREERING_WITH_MEMPLOT = 2, TREERING_WITHOUT_SUMMARY = 4 };

#ifndef TREERING_DISABLE

/* 0 while nothing is recorded. The inline functions below look at it first. Only read it. */
extern uint32_t treering_state;

/* The id of a task that is not recorded, since a filter of the user says so. */
#define TREERING_IGNORED UINT32_MAX

/* The id of the task with that name, which is made when it is first asked for: same name, same
 * id. Ids are those of this process and this run only. They start from 1; 0 means that nothing is
 * recorded yet, so that it may be asked again later, and TREERING_IGNORED stays what it is. Both
 * may be entered, which does nothing. */
uint32_t treering_task(const char *name);

/* The same with the place in the source; a null `file` and a `line` of 0 stand for none. */
uint32_t treering_task_at(const char *name, const char *file, uint32_t line);

/* The same for a task that is called so often that reading the clock for each call would show:
 * all calls are counted, one in `timed_one_in` is timed, and the times of the task are estimated
 * from these. 0 times none. What is known of a task when it is first asked for stays. */
uint32_t treering_task_sampled(const char *name, const char *file, uint32_t line, uint32_t timed_one_in);

/* The id of a function of an interpreted language, for interpreters: same name, file and line,
 * same id. The texts have lengths, as names in interpreters seldom end with a zero byte; a `file`
 * of length 0 and a `line` of 0 stand for none. */
uint32_t treering_function(const char *name, size_t name_length, const char *file, size_t file_length,
                           uint32_t line);

/* The same for what is not written in the language, or not as a function: `kind` is one of those
 * above, and any other number stands for TREERING_KIND_FUNCTION. It does not tell functions apart:
 * that of the first one with the name, file and line holds. */
uint32_t treering_function_of_kind(const char *name, size_t name_length, const char *file,
                                   size_t file_length, uint32_t line, int kind);

/* Starts a task. It runs until the treering_task_stop that belongs to it, and every task that is
 * started meanwhile is called by it. */
void treering_task_start(uint32_t id);

/* Starts a task by its name of `length` bytes, which is looked up each time. */
void treering_task_start_named(const char *name, size_t length);

/* Stops the task of this thread that was started last. */
void treering_task_stop(void);

/* Starts an activation of a task and returns a token for it; 0 when it is not recorded. */
uint64_t treering_enter(uint32_t id);

/* The same for an activation that ends at the latest when the code with this stack pointer does:
 * longjmp to a place further up on the stack leaves it, and so does an enter further up, when it
 * was jumped over in another way. `frame` is the stack pointer itself, as the calling function has it. */
uint64_t treering_enter_frame(uint32_t id, uint64_t frame);

/* Ends the activation with that token, and before it all that were entered later in this thread
 * and have not ended, as after a longjmp. A token of 0, of another thread or of an activation that
 * has ended does nothing. */
void treering_leave(uint64_t token);

/* An activation of a task in which no other is started or entered: what treering_leaf_enter returns
 * is for treering_leaf_leave. It costs less than treering_enter, and a leave of one that was not
 * timed (see treering_task_sampled) needs no call: its `node` is 0. What is entered or allocated in
 * it all the same belongs to its caller; the times of such activations are not used, which the
 * report tells. */
typedef struct treering_leaf {
    uint64_t node;
    uint64_t start;
} treering_leaf;
treering_leaf treering_leaf_enter(uint32_t id);
void treering_leaf_leave(treering_leaf leaf);

/* For logic programs: a task that had ended with success is asked for another solution. Returns a
 * token like treering_enter, for the activation that thereby goes on. */
uint64_t treering_redo(uint32_t id);

/* Ends an activation like treering_leave, and counts that it failed or ended by an exception. An
 * activation that ended in neither way is counted as an exit. */
void treering_fail(uint64_t token);
void treering_exception(uint64_t token);

/* Counts that the other solutions of an activation were cut off; it goes on. */
void treering_cut(uint64_t token);

/* Tells the size of the arguments of a running activation, in whatever unit the program measures
 * its problems, so that the cost can be seen as a function of it. */
void treering_argument_size(uint64_t token, uint64_t size);

/* The clock of all events, in ticks of its own, for treering_line. */
uint64_t treering_ticks(void);

/* Tells that a statement on a line of the running function has ended: how many ticks it took with
 * all that it called, and without. Nothing happens outside of all functions. */
void treering_line(uint32_t line, uint64_t total_ticks, uint64_t self_ticks);

/* Adds a point to the memory plot: now, the task that runs in this thread, the description of
 * `length` bytes, and the memory in use. Takes some microseconds. */
void treering_point(const char *description, size_t length);

/* Marks the moment with a name of `length` bytes, for `treering record` where that has started the
 * program: `treering report --phase NAME` shows what happened from there up to the next mark of the
 * process. Takes less than a microsecond, and next to nothing where nothing records. The first 104
 * bytes of a name are kept, and 16,384 marks of a recording, which counts the others. */
void treering_mark(const char *name, size_t length);

/* Switches points of the memory plot on, as they are at first, or off for 0, those at the start and at
 * the stop of a benchmark too. Where the environment says TREERING_MEMPLOT=off they stay off. */
void treering_set_points(int on);

/* Tells a parameter or a result of the run. Of equal names the last value counts. */
void treering_parameter(const char *name, size_t name_length, const char *value, size_t value_length);
void treering_result(const char *name, size_t name_length, const char *value, size_t value_length);

/* Sets the profiler, one of the kinds above, and starts recording. Returns 0, or -1 and changes
 * nothing where the kind is unknown. */
int treering_set_profiler(int kind);

/* Stops recording; what was recorded is kept. */
void treering_clear_profiler(void);

/* Sets the file of the profile, instead of treering.trg or what TREERING_OUTPUT says; `%p` in it
 * stands for the number of the process. A null pointer or an empty text stands for treering.trg.
 * Holds for the next file, so it comes before the first event, or after treering_finish. */
void treering_set_output(const char *path);

/* Brings the live file up to date, which another process may be reading; all but the relation of
 * its clock to that of the system always is. Returns 0, or -1 where there is none. */
int treering_flush(void);

/* Puts the finished profile in the place of the live file and records nothing more, until
 * treering_set_profiler starts another one. Returns 0, also where nothing was recorded, or -1 where
 * it could not be written. When the program ends, this happens by itself. */
int treering_finish(void);

/* Starts a benchmark: forgets the tasks, points, parameters and results of the one before, and
 * records tasks with their CPU times. */
void treering_bench_start(const char *name, size_t name_length, const char *description,
                          size_t description_length);

/* Stops the benchmark. Its report can still be asked for. */
void treering_bench_stop(void);

/* 1 from the start of a benchmark to its stop, otherwise 0. */
int treering_bench_is_running(void);

/* Writes the report of the benchmark, as it is now, to `buffer`, at most `capacity` bytes of it
 * and no zero byte after it. Returns how many bytes the whole report has. `buffer` may be null
 * when `capacity` is 0. `verbosity`, `format` and `contents` are as above. */
size_t treering_bench_report(int verbosity, int format, int contents, char *buffer, size_t capacity);

/* Takes the options for reports out of the arguments of main, and remembers them:
 *
 *     --report-time[=LEVEL]      text, on standard error
 *     --export-time-xml[=FILE]   XML, to FILE if it is given, else on standard error
 *     --export-time-dot[=LEVEL]  DOT, on standard error
 *
 * LEVEL is none, minimal, normal or full, or a number as above; without it, it is normal. Nothing
 * behind an argument `--` is looked at. `arguments[*count]` is a null pointer before and afterwards.
 * Returns 0, or -1 when a level is unknown or the name of the file is missing: then one line on
 * standard error says so, and all arguments stay.
 *
 * The reports are written when the benchmark stops. If one runs when the program ends, it is
 * stopped; if there was none, the reports say so. A FILE is written again at the end of the program
 * if a result was told after the stop. Children that are forked write none. */
int treering_bench_arguments(int *count, char **arguments);

/* Lines about these options for the help of the program, each with a line end. */
const char *treering_bench_arguments_help(void);

#else /* TREERING_DISABLE: the same names, and nothing behind them. */

static const uint32_t treering_state = 0;
#define TREERING_IGNORED UINT32_MAX

TREERING_INLINE uint32_t treering_task(const char *name) { return (void)name, 0; }
TREERING_INLINE uint32_t treering_task_at(const char *name, const char *file, uint32_t line)
{
    return (void)name, (void)file, (void)line, 0;
}
TREERING_INLINE uint32_t treering_task_sampled(const char *name, const char *file, uint32_t line,
                                             uint32_t timed_one_in)
{
    return (void)name, (void)file, (void)line, (void)timed_one_in, 0;
}
TREERING_INLINE uint32_t treering_function(const char *name, size_t name_length, const char *file,
                                         size_t file_length, uint32_t line)
{
    return (void)name, (void)name_length, (void)file, (void)file_length, (void)line, 0;
}
TREERING_INLINE uint32_t treering_function_of_kind(const char *name, size_t name_length, const char *file,
                                                 size_t file_length, uint32_t line, int kind)
{
    return (void)kind, treering_function(name, name_length, file, file_length, line);
}
TREERING_INLINE void treering_task_start(uint32_t id) { (void)id; }
TREERING_INLINE void treering_task_start_named(const char *name, size_t length) { (void)name, (void)length; }
TREERING_INLINE void treering_task_stop(void) {}
TREERING_INLINE uint64_t treering_enter(uint32_t id) { return (void)id, 0; }
TREERING_INLINE uint64_t treering_enter_frame(uint32_t id, uint64_t frame) { return (void)id, (void)frame, 0; }
TREERING_INLINE void treering_leave(uint64_t token) { (void)token; }
typedef struct treering_leaf {
    uint64_t node;
    uint64_t start;
} treering_leaf;
TREERING_INLINE treering_leaf treering_leaf_enter(uint32_t id)
{
    const treering_leaf nothing = {0, 0};
    return (void)id, nothing;
}
TREERING_INLINE void treering_leaf_leave(treering_leaf leaf) { (void)leaf; }
TREERING_INLINE uint64_t treering_redo(uint32_t id) { return (void)id, 0; }
TREERING_INLINE void treering_fail(uint64_t token) { (void)token; }
TREERING_INLINE void treering_exception(uint64_t token) { (void)token; }
TREERING_INLINE void treering_cut(uint64_t token) { (void)token; }
TREERING_INLINE void treering_argument_size(uint64_t token, uint64_t size) { (void)token, (void)size; }
TREERING_INLINE uint64_t treering_ticks(void) { return 0; }
TREERING_INLINE void treering_line(uint32_t line, uint64_t total_ticks, uint64_t self_ticks)
{
    (void)line, (void)total_ticks, (void)self_ticks;
}
TREERING_INLINE void treering_point(const char *description, size_t length) { (void)description, (void)length; }
TREERING_INLINE void treering_mark(const char *name, size_t length) { (void)name, (void)length; }
TREERING_INLINE void treering_set_points(int on) { (void)on; }
TREERING_INLINE void treering_parameter(const char *name, size_t name_length, const char *value,
                                      size_t value_length)
{
    (void)name, (void)name_length, (void)value, (void)value_length;
}
TREERING_INLINE void treering_result(const char *name, size_t name_length, const char *value,
                                   size_t value_length)
{
    (void)name, (void)name_length, (void)value, (void)value_length;
}
TREERING_INLINE int treering_set_profiler(int kind) { return (void)kind, 0; }
TREERING_INLINE void treering_clear_profiler(void) {}
TREERING_INLINE void treering_set_output(const char *path) { (void)path; }
TREERING_INLINE int treering_flush(void) { return 0; }
TREERING_INLINE int treering_finish(void) { return 0; }
TREERING_INLINE void treering_bench_start(const char *name, size_t name_length, const char *description,
                                        size_t description_length)
{
    (void)name, (void)name_length, (void)description, (void)description_length;
}
TREERING_INLINE void treering_bench_stop(void) {}
TREERING_INLINE int treering_bench_is_running(void) { return 0; }
TREERING_INLINE size_t treering_bench_report(int verbosity, int format, int contents, char *buffer,
                                           size_t capacity)
{
    return (void)verbosity, (void)format, (void)contents, (void)buffer, (void)capacity, 0;
}
TREERING_INLINE int treering_bench_arguments(int *count, char **arguments)
{
    return (void)count, (void)arguments, 0;
}
TREERING_INLINE const char *treering_bench_arguments_help(void) { return ""; }

#endif

/* Whether something is recorded: one load. */
TREERING_INLINE int treering_is_on(void)
{
#if defined(TREERING_DISABLE)
    return 0;
#elif defined(__GNUC__) || defined(__clang__)
    return __atomic_load_n(&treering_state, __ATOMIC_RELAXED) != 0;
#else
    return *(const volatile uint32_t *)&treering_state != 0;
#endif
}

/* The id of the task of one place in the source, so that its name is looked up once: `site` is 0 at
 * first and then holds the id. While nothing is recorded yet it stays 0 and is asked for again. Two
 * threads that arrive together look it up both and find the same id. */
TREERING_INLINE uint32_t treering_known_id(const uint32_t *site)
{
#if defined(__GNUC__) || defined(__clang__)
    const uint32_t id = __atomic_load_n(site, __ATOMIC_RELAXED);
    return __builtin_expect(id == 0, 0) ? 0 : id;
#else
    return *(const volatile uint32_t *)site;
#endif
}

TREERING_INLINE uint32_t treering_keep_id(uint32_t *site, uint32_t id)
{
#if defined(__GNUC__) || defined(__clang__)
    __atomic_store_n(site, id, __ATOMIC_RELAXED);
#else
    *(volatile uint32_t *)site = id;
#endif
    return id;
}

TREERING_INLINE uint32_t treering_id_of_site(uint32_t *site, const char *name, const char *file, uint32_t line)
{
    const uint32_t id = treering_known_id(site);
    return id != 0 ? id : treering_keep_id(site, treering_task_at(name, file, line));
}

/* Enters the task of one place in the source; `site` as above. */
TREERING_INLINE uint64_t treering_enter_site(uint32_t *site, const char *name, const char *file, uint32_t line)
{
    uint32_t id;
    if (!treering_is_on())
        return 0;
    id = treering_id_of_site(site, name, file, line);
    return id == TREERING_IGNORED ? 0 : treering_enter(id);
}

/* The same for an activation that ends with the code that has the stack pointer `frame`. */
TREERING_INLINE uint64_t treering_enter_site_frame(uint32_t *site, const char *name, const char *file,
                                                 uint32_t line, uint64_t frame)
{
    uint32_t id;
    if (!treering_is_on())
        return 0;
    id = treering_id_of_site(site, name, file, line);
    return id == TREERING_IGNORED ? 0 : treering_enter_frame(id, frame);
}

/* Enters a leaf at one place in the source; `site` as above. */
TREERING_INLINE treering_leaf treering_leaf_enter_site(uint32_t *site, const char *name, const char *file,
                                                     uint32_t line, uint32_t timed_one_in)
{
    const treering_leaf nothing = {0, 0};
    uint32_t id;
    if (!treering_is_on())
        return nothing;
    id = treering_known_id(site);
    if (id == 0)
        id = treering_keep_id(site, treering_task_sampled(name, file, line, timed_one_in));
    return id == TREERING_IGNORED ? nothing : treering_leaf_enter(id);
}

/* Leaves the leaf that is pointed to; does not call where it was not timed. */
TREERING_INLINE void treering_leave_leaf(const treering_leaf *leaf)
{
    if (leaf->node != 0)
        treering_leaf_leave(*leaf);
}

/* Leaves the activation whose token is pointed to; does not call where it was not recorded. */
TREERING_INLINE void treering_leave_scope(const uint64_t *token)
{
    if (*token != 0)
        treering_leave(*token);
}

#ifdef __cplusplus
}
#endif

#define TREERING_JOIN_(a, b) a##b
#define TREERING_JOIN(a, b) TREERING_JOIN_(a, b)
#ifdef __COUNTER__
#define TREERING_UNIQUE __COUNTER__
#else
#define TREERING_UNIQUE __LINE__
#endif

/* In C: TREERING_SCOPE(name) makes the rest of the enclosing block an activation of the task with
 * that name, however the block is left. The name must be the same each time the line is reached;
 * TREERING_SCOPE_NAMED looks it up each time. TREERING_FUNCTION() takes the name of the function.
 * Several may stand in one block. TREERING_LEAF(name, n) is for a block in which no other scope is
 * entered and which runs very often: all of its calls are counted, one in n is timed, none for 0.
 *
 * Scopes that longjmp jumps out of end when one around them ends. With glibc on x86-64 they end in
 * the jump, unless they stand in the function that is jumped to or were inlined into it.
 *
 * They need the cleanup attribute of GCC and Clang: TREERING_HAS_SCOPE is 1. For other compilers
 * it is 0, the macros do nothing, and treering_task_start and treering_task_stop are to be used. */
#if defined(TREERING_DISABLE) && !defined(__cplusplus)
#define TREERING_HAS_SCOPE 1
#define TREERING_SCOPE(name) ((void)sizeof(name))
#define TREERING_SCOPE_NAMED(name) ((void)sizeof(name))
#define TREERING_FUNCTION() ((void)0)
#define TREERING_LEAF(name, n) ((void)sizeof(name), (void)(n))
#elif !defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__))
#define TREERING_HAS_SCOPE 1
#define TREERING_TOKEN_(n)                                                                           \
    __attribute__((cleanup(treering_leave_scope), unused)) const uint64_t TREERING_JOIN(treering_token_, n)
#ifdef __x86_64__
/* Reads the stack pointer here and not in an inline function, which has a frame of its own when it
 * is not inlined. */
#define TREERING_STACK_POINTER_()                                                                    \
    __extension__({                                                                                  \
        uint64_t treering_stack_pointer_;                                                            \
        __asm__ volatile("movq %%rsp, %0" : "=r"(treering_stack_pointer_));                          \
        treering_stack_pointer_;                                                                     \
    })
#define TREERING_ENTER_SITE_(site, name)                                                             \
    treering_enter_site_frame(site, name, __FILE__, __LINE__, TREERING_STACK_POINTER_())
#define TREERING_ENTER_(id) treering_enter_frame(id, TREERING_STACK_POINTER_())
#else
#define TREERING_ENTER_SITE_(site, name) treering_enter_site(site, name, __FILE__, __LINE__)
#define TREERING_ENTER_(id) treering_enter(id)
#endif
#define TREERING_SCOPE_(name, n)                                                                     \
    static uint32_t TREERING_JOIN(treering_site_, n);                                                \
    TREERING_TOKEN_(n) = TREERING_ENTER_SITE_(&TREERING_JOIN(treering_site_, n), name)
#define TREERING_LEAF_(name, timed_one_in, n)                                                        \
    static uint32_t TREERING_JOIN(treering_site_, n);                                                \
    __attribute__((cleanup(treering_leave_leaf), unused)) const treering_leaf TREERING_JOIN(         \
        treering_leaf_, n)                                                                           \
        = treering_leaf_enter_site(&TREERING_JOIN(treering_site_, n), name, __FILE__, __LINE__, timed_one_in)
#define TREERING_LEAF(name, n) TREERING_LEAF_(name, n, TREERING_UNIQUE)
#define TREERING_SCOPE_NAMED_(name, n)                                                               \
    TREERING_TOKEN_(n) = treering_is_on() ? TREERING_ENTER_(treering_task(name)) : 0
#define TREERING_SCOPE(name) TREERING_SCOPE_(name, TREERING_UNIQUE)
#define TREERING_SCOPE_NAMED(name) TREERING_SCOPE_NAMED_(name, TREERING_UNIQUE)
#define TREERING_FUNCTION() TREERING_SCOPE(__func__)
#elif !defined(__cplusplus)
#define TREERING_HAS_SCOPE 0
#define TREERING_SCOPE(name) ((void)sizeof(name))
#define TREERING_SCOPE_NAMED(name) ((void)sizeof(name))
#define TREERING_FUNCTION() ((void)0)
#define TREERING_LEAF(name, n) ((void)sizeof(name), (void)(n))
#endif

#endif
