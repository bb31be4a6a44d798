#include "mock_runtime.h"

#include <stdarg.h>
#include <treering/treering.h>

uint32_t treering_state = 1;

enum { TASKS = 64 };
static char calls[65536];
static char tasks[TASKS][64] = {"nothing"};
static uint32_t task_count = 1;
static int undecided;
static uint64_t tokens;
static const char *reports[2] = {"", ""};

static void call(const char *format, ...)
{
    size_t used = strlen(calls);
    va_list arguments;
    va_start(arguments, format);
    if (used > 0 && used + 1 < sizeof calls)
        calls[used++] = ' ';
    vsnprintf(calls + used, sizeof calls - used, format, arguments);
    va_end(arguments);
}

const char *mock_calls(void) { return calls; }

void mock_reset(void) { memset(calls, 0, sizeof calls); }

void mock_decide(int decided) { undecided = !decided; }

void mock_report(const char *first, const char *later)
{
    reports[0] = first;
    reports[1] = later;
}

/* The id, which is at least 1. Names that begin with "ignored" are as if a filter said so. */
static uint32_t find(const char *name)
{
    uint32_t id = 1;
    if (undecided)
        return 0;
    if (strncmp(name, "ignored", 7) == 0)
        return TREERING_IGNORED;
    while (id < task_count && strcmp(tasks[id], name) != 0)
        ++id;
    if (id == task_count && id < TASKS)
        snprintf(tasks[task_count++], sizeof tasks[0], "%s", name);
    return id;
}

static const char *task_name(uint32_t id) { return id < task_count ? tasks[id] : "ignored"; }

uint32_t treering_task(const char *name)
{
    call("task(%s)", name);
    return find(name);
}

uint32_t treering_task_at(const char *name, const char *file, uint32_t line)
{
    call("%s(%s)", file != NULL && line > 0 ? "task_at" : "task_nowhere", name);
    return find(name);
}

uint32_t treering_task_sampled(const char *name, const char *file, uint32_t line, uint32_t timed_one_in)
{
    call("%s(%s,%d)", file != NULL && line > 0 ? "task_sampled" : "task_sampled_nowhere", name, (int)timed_one_in);
    return find(name);
}

treering_leaf treering_leaf_enter(uint32_t id)
{
    const treering_leaf nothing = {0, 0};
    /* Those that are named so are timed. */
    const int timed = strstr(task_name(id), "timed") != NULL;
    const treering_leaf leaf = {++tokens, 7};
    call("leaf(%s)", task_name(id));
    return timed ? leaf : nothing;
}

void treering_leaf_leave(treering_leaf leaf) { call("leave_leaf(%d,%d)", (int)leaf.node, (int)leaf.start); }

uint32_t treering_function(const char *name, size_t name_length, const char *file, size_t file_length, uint32_t line)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", (int)name_length, name);
    call("function(%s,%.*s:%d)", copy, (int)file_length, file, (int)line);
    return find(copy);
}

uint32_t treering_function_of_kind(const char *name, size_t name_length, const char *file, size_t file_length,
                                   uint32_t line, int kind)
{
    call("kind(%d)", kind);
    return treering_function(name, name_length, file, file_length, line);
}

void treering_task_start(uint32_t id) { call("start(%s)", task_name(id)); }
void treering_task_start_named(const char *name, size_t length) { call("start_named(%.*s)", (int)length, name); }
void treering_task_stop(void) { call("stop"); }

uint64_t treering_enter(uint32_t id)
{
    call("enter(%s)=%d", task_name(id), (int)++tokens);
    return tokens;
}

/* The same but for the word where the frame is not one of the stack around here. */
uint64_t treering_enter_frame(uint32_t id, uint64_t frame)
{
    char here = 0;
    uint64_t apart = frame - (uint64_t)(uintptr_t)&here;
    call("%s(%s)=%d", apart < 65536 ? "enter" : "enter_elsewhere", task_name(id), (int)++tokens);
    return tokens;
}

uint64_t treering_redo(uint32_t id)
{
    call("redo(%s)=%d", task_name(id), (int)++tokens);
    return tokens;
}

void treering_leave(uint64_t token) { call("leave(%d)", (int)token); }
void treering_fail(uint64_t token) { call("fail(%d)", (int)token); }
void treering_exception(uint64_t token) { call("exception(%d)", (int)token); }
void treering_cut(uint64_t token) { call("cut(%d)", (int)token); }
void treering_argument_size(uint64_t token, uint64_t size) { call("size(%d,%d)", (int)token, (int)size); }
uint64_t treering_ticks(void) { return 0; }
void treering_line(uint32_t line, uint64_t total, uint64_t self)
{
    call("line(%d,%d,%d)", (int)line, (int)total, (int)self);
}
void treering_point(const char *text, size_t length) { call("point(%.*s)", (int)length, text); }
void treering_mark(const char *name, size_t length) { call("mark(%.*s)", (int)length, name); }
void treering_set_points(int on) { call("set_points(%d)", on); }

void treering_parameter(const char *name, size_t name_length, const char *value, size_t value_length)
{
    call("parameter(%.*s,%.*s)", (int)name_length, name, (int)value_length, value);
}

void treering_result(const char *name, size_t name_length, const char *value, size_t value_length)
{
    call("result(%.*s,%.*s)", (int)name_length, name, (int)value_length, value);
}

int treering_set_profiler(int kind)
{
    call("set_profiler(%d)", kind);
    treering_state = (uint32_t)kind;
    return kind > TREERING_COUNT ? -1 : 0;
}

void treering_clear_profiler(void)
{
    call("clear_profiler");
    treering_state = 0;
}

void treering_set_output(const char *path) { call("set_output(%s)", path); }
int treering_flush(void) { return call("flush"), 0; }
int treering_finish(void) { return call("finish"), 0; }

void treering_bench_start(const char *name, size_t length, const char *text, size_t text_length)
{
    call("bench_start(%.*s,%.*s)", (int)length, name, (int)text_length, text);
}

void treering_bench_stop(void) { call("bench_stop"); }

int treering_bench_arguments(int *count, char **arguments)
{
    call("arguments(%d,%s)", *count, arguments[0]);
    return *count > 1 ? (*count = 1, 0) : -1;
}

const char *treering_bench_arguments_help(void) { return call("arguments_help"), "help\n"; }

int treering_bench_is_running(void) { return call("bench_is_running"), 1; }

size_t treering_bench_report(int verbosity, int format, int contents, char *buffer, size_t capacity)
{
    const char *report = reports[0];
    size_t length = strlen(report);
    call("report(%d,%d,%d)", verbosity, format, contents);
    reports[0] = reports[1];
    if (capacity > 0)
        memcpy(buffer, report, length < capacity ? length : capacity);
    return length;
}
