/* The macros of treering.h call the right functions in the right order. */
#include <treering/treering.h>

#include "mock_runtime.h"

static int returns_early(int early)
{
    TREERING_FUNCTION();
    if (early)
        return 1;
    {
        TREERING_SCOPE("inner");
        TREERING_SCOPE("innermost");
    }
    return 0;
}

static void each_time(const char *name) { TREERING_SCOPE_NAMED(name); }

static void loop(int times)
{
    while (times-- > 0) {
        TREERING_SCOPE("round");
        if (times == 1)
            continue;
        if (times == 0)
            break;
    }
}

static void ignored(void) { TREERING_FUNCTION(); }

static void early(void) { TREERING_FUNCTION(); }

/* A leaf that is not timed is not left by a call. */
static void leaves(void)
{
    for (int i = 0; i < 2; i++) {
        TREERING_LEAF("timed leaf", 16);
        TREERING_LEAF("plain leaf", 0);
        TREERING_LEAF("ignored leaf", 1);
    }
}

/* Ignored places are looked up once, and places that cannot be recorded yet, again. */
static void lookups(void)
{
    ignored();
    ignored();
    EXPECT_CALLS("task_at(ignored)");
    mock_decide(0);
    early();
    EXPECT_CALLS("task_at(early) enter(nothing)=12 leave(12)");
    mock_decide(1);
    early();
    early();
    EXPECT_CALLS("task_at(early) enter(early)=13 leave(13) enter(early)=14 leave(14)");
}

int main(void)
{
    EXPECT(TREERING_HAS_SCOPE);

    returns_early(0);
    EXPECT_CALLS("task_at(returns_early) enter(returns_early)=1 "
                 "task_at(inner) enter(inner)=2 task_at(innermost) enter(innermost)=3 "
                 "leave(3) leave(2) leave(1)");
    returns_early(1);
    EXPECT_CALLS("enter(returns_early)=4 leave(4)");

    each_time("a");
    each_time("b");
    EXPECT_CALLS("task(a) enter(a)=5 leave(5) task(b) enter(b)=6 leave(6)");

    loop(3);
    EXPECT_CALLS("task_at(round) enter(round)=7 leave(7) enter(round)=8 leave(8) enter(round)=9 leave(9)");

    /* Off: not even the name is looked up. */
    treering_clear_profiler();
    mock_reset();
    returns_early(0);
    each_time("c");
    EXPECT(!treering_is_on());
    EXPECT_CALLS("");

    /* Switched on within a scope: what was not entered is not left. */
    {
        TREERING_SCOPE("outer");
        treering_set_profiler(TREERING_FLAT);
        TREERING_SCOPE("from here");
    }
    EXPECT_CALLS("set_profiler(2) task_at(from here) enter(from here)=10 leave(10)");

    /* Switched off within a scope: what was entered is left. */
    {
        TREERING_SCOPE("until here");
        treering_clear_profiler();
    }
    EXPECT_CALLS("task_at(until here) enter(until here)=11 clear_profiler leave(11)");

    treering_set_profiler(TREERING_COUNT);
    mock_reset();
    lookups();
    leaves();
    EXPECT_CALLS("task_sampled(timed leaf,16) leaf(timed leaf) task_sampled(plain leaf,0) leaf(plain leaf) "
                 "task_sampled(ignored leaf,1) leave_leaf(15,7) "
                 "leaf(timed leaf) leaf(plain leaf) leave_leaf(17,7)");
    return 0;
}
