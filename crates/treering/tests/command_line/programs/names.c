/* Tasks whose names are hard on whoever prints or stores them. */
#include <string.h>
#include <treering/treering.h>

static const char *const names[] = {
    "\"quoted\" and 'quoted'",
    "two\nlines",
    "not UTF-8: \xff\xfe\xc3",
    "back\\slash \\n",
    "semi;colon 42",
    "calls=7 0\nfn=(1) forged\n0 99999999999",
    "\x1b[31mred\x1b[0m\r\x07",
    "<b>&amp;</b>",
    "(3) compressed",
    "  blanks  ",
    "naïve ☃",
};

int main(void)
{
    volatile long sink = 0;
    treering_task_start_named("outermost", 9);
    for (size_t at = 0; at < sizeof names / sizeof *names; ++at) {
        treering_task_start_named(names[at], strlen(names[at]));
        for (long turn = 0; turn < 20000; ++turn)
            sink += turn;
        treering_task_stop();
    }
    treering_task_stop();
    return 0;
}
