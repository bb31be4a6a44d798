/* An interpreter that states the kinds of its functions and the costs of their lines. */

#include <treering/treering.h>

#include <string.h>

static uint32_t function(const char *name, uint32_t line, int kind)
{
    const char file[] = "program.lang";
    return treering_function_of_kind(name, strlen(name), file, strlen(file), line, kind);
}

int main(void)
{
    treering_line(1, 5, 5); /* of no function, and nothing is recorded */
    treering_set_profiler(TREERING_CALL_GRAPH);
    uint32_t script = function("script", 1, TREERING_KIND_SCRIPT);
    uint32_t solve = function("solve", 7, TREERING_KIND_FUNCTION);
    uint32_t sine = function("sine", 0, TREERING_KIND_BUILTIN);
    uint32_t odd = function("odd", 9, 4711);
    uint64_t outer = treering_enter(script);
    for (int i = 0; i < 10; ++i) {
        uint64_t start = treering_ticks();
        uint64_t inner = treering_enter(solve);
        treering_line(8, 300, 200);
        treering_line(8, 300, 200);
        treering_leave(treering_enter(sine));
        treering_line(9, 100, 100);
        treering_leave(inner);
        uint64_t taken = treering_ticks() - start;
        treering_line(2, taken, taken / 2);
    }
    treering_leave(treering_enter(odd));
    treering_leave(outer);
    return treering_finish();
}
