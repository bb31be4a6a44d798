/* A child with one phase, then ten phases, each in a function of its own behind a mark of its name.

   usage: marked [MILLIONS]   rounds of work of each phase in millions, 20 unless told */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <treering/treering.h>
#include <unistd.h>

volatile uint64_t result;

#define PHASE(name)                                                       \
    __attribute__((noinline)) void name(uint64_t rounds)                  \
    {                                                                     \
        treering_mark(#name, strlen(#name));                              \
        uint64_t state = 88172645463325252u;                              \
        for (uint64_t round = 0; round < rounds; round++) {               \
            state ^= state << 13;                                         \
            state ^= state >> 7;                                          \
            state ^= state << 17;                                         \
        }                                                                 \
        result = state;                                                   \
    }

PHASE(load)
PHASE(parse)
PHASE(indexing)
PHASE(sort)
PHASE(merge)
PHASE(simulate)
PHASE(reduce)
PHASE(encode)
PHASE(compress)
PHASE(store)
PHASE(of_child)

int main(int argc, char **argv)
{
    uint64_t rounds = (argc > 1 ? strtoull(argv[1], 0, 10) : 20) * 1000000;
    void (*phases[])(uint64_t) = {load, parse, indexing, sort, merge, simulate, reduce, encode, compress, store};
    pid_t child = fork();
    if (child == 0) {
        of_child(rounds);
        _exit(0);
    }
    waitpid(child, 0, 0);
    for (int phase = 0; phase < 10; phase++)
        phases[phase](rounds);
    return 0;
}
