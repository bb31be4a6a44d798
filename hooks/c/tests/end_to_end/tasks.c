/* Tasks in C: scopes, starts and stops, and a name that is hard to write. */
#include <stdio.h>
#include <string.h>

#include <treering/treering.h>

static void leaf(void) { TREERING_FUNCTION(); }

static void branch(int leaves)
{
    TREERING_FUNCTION();
    TREERING_SCOPE("leaves");
    while (leaves-- > 0)
        leaf();
}

static void report(const char *path, int format)
{
    static char text[1 << 20];
    size_t length = treering_bench_report(TREERING_REPORT_FULL, format, TREERING_WITH_CALLGRAPH, text, sizeof text);
    FILE *file = fopen(path, "wb");
    if (file != NULL && length <= sizeof text) {
        fwrite(text, 1, length, file);
        fclose(file);
    }
}

int main(int argc, char **argv)
{
    const char *hard = "\"quoted\"\n<\xff>";
    if (treering_bench_arguments(&argc, argv) != 0)
        return 2;
    for (int i = 1; argv[i] != NULL; ++i)
        puts(argv[i]);
    treering_bench_start("tasks", 5, "in C", 4);
    for (int i = 0; i < 10; ++i)
        branch(i);
    uint32_t id = treering_task("by id");
    treering_task_start(id);
    treering_task_start_named(hard, strlen(hard));
    treering_task_stop();
    treering_task_stop();
    treering_point("at the end", strlen("at the end"));
    treering_bench_stop();
    report("tasks.xml", TREERING_FORMAT_XML);
    return 0;
}
