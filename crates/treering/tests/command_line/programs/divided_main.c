/* Calls what is in `divided.c`; see there. */
#include <stdlib.h>

void visit(int n);
void pass_on(int n);

void touch(int value)
{
    __asm__ volatile("" : : "r"(value));
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    for (int round = 0; round < rounds; round++)
        visit(round % 4 == 0 ? 1 : round % 4 == 1 ? 3 : 2);
    for (int round = 0; round < rounds; round++)
        pass_on(2);
    return 0;
}
