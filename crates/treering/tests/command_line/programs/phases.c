/* Three phases, one after the other, that each use as much processor time.

   usage: phases [MILLIONS]   rounds of work of each phase in millions, 100 unless told */
#include <stdint.h>
#include <stdlib.h>

volatile uint64_t result;

#define PHASE(name)                                                       \
    __attribute__((noinline)) void name(uint64_t rounds)                  \
    {                                                                     \
        uint64_t state = 88172645463325252u;                              \
        for (uint64_t round = 0; round < rounds; round++) {               \
            state ^= state << 13;                                         \
            state ^= state >> 7;                                          \
            state ^= state << 17;                                         \
        }                                                                 \
        result = state;                                                   \
    }

PHASE(load)
PHASE(solve)
PHASE(store)

int main(int argc, char **argv)
{
    uint64_t rounds = (argc > 1 ? strtoull(argv[1], 0, 10) : 100) * 1000000;
    load(rounds);
    solve(rounds);
    store(rounds);
    return 0;
}
