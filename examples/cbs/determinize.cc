// The subset construction for an automaton of n + 1 states: words whose n-th letter from the end is the first letter.
// With REPEATED, the closure of a set is computed for every letter, and not once for all of them. With MEMORY, the memory
// is noted after every 256 sets.
#include <cbs/bench/bench_macros.hh>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <vector>

using Set = std::uint64_t;

static const int letters = 8;

struct Automaton {
    int size;
    // By state: where it gets without a letter, with the first letter, and with any letter.
    std::vector<Set> silent, first, any;

    explicit Automaton(int n) : size(2 * n + 2), silent(size), first(size), any(size)
    {
        // Each state has a twin that it gets to without a letter.
        for (int state = 0; state <= n; ++state)
            silent[state] = Set(1) << (n + 1 + state);
        any[n + 1] = 1;
        first[n + 1] = 2;
        for (int state = 1; state < n; ++state)
            any[n + 1 + state] = Set(1) << (state + 1);
    }
};

__attribute__((noinline)) static Set closure(const Automaton& automaton, Set set)
{
    BENCH_TASK_SCOPED("closure");
    for (Set before = 0; before != set;) {
        before = set;
        for (int state = 0; state < automaton.size; ++state)
            if (set >> state & 1)
                set |= automaton.silent[state];
    }
    return set;
}

__attribute__((noinline)) static Set successors(const Automaton& automaton, Set set, int letter)
{
    BENCH_TASK_SCOPED("successors");
    Set to = 0;
    for (int state = 0; state < automaton.size; ++state)
        if (set >> state & 1)
            to |= automaton.any[state] | (letter == 0 ? automaton.first[state] : 0);
    return to;
}

__attribute__((noinline)) static long determinize(const Automaton& automaton)
{
    BENCH_TASK_SCOPED("determinize");
    std::map<Set, long> numbers{{1, 0}};
    std::vector<Set> waiting{1};
#ifdef MEMORY
    long taken = 0;
#endif
    while (!waiting.empty()) {
        const Set set = waiting.back();
        waiting.pop_back();
#ifdef MEMORY
        if (++taken % 256 == 0)
            BENCH_MEMPLOT("256 sets");
#endif
#ifndef REPEATED
        const Set closed = closure(automaton, set);
#endif
        for (int letter = 0; letter < letters; ++letter) {
#ifdef REPEATED
            const Set closed = closure(automaton, set);
#endif
            const Set to = successors(automaton, closed, letter);
            BENCH_TASK_START("number");
            if (numbers.emplace(to, numbers.size()).second)
                waiting.push_back(to);
            BENCH_TASK_STOP();
        }
    }
    return numbers.size();
}

int main(int, char** arguments)
{
    const int n = std::atoi(arguments[1]);
    BENCH_START("determinize", "States of the subset construction.");
    BENCH_PARAMETER("n", long(n));
    BENCH_RESULT("states", determinize(Automaton(n)));
    BENCH_STOP();
}
