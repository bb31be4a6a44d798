/* Functions whose calls are counted; nothing in it knows of a profiler.
 *
 * usage: calls ROUNDS [wait | forever]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile long sink;

APART static long leaf(long turns)
{
    for (long turn = 0; turn < turns; ++turn)
        sink += turn;
    return sink;
}

APART long fibonacci(int n)
{
    return n < 2 ? leaf(20) : fibonacci(n - 1) + fibonacci(n - 2);
}

APART int is_odd(int n);

APART int is_even(int n)
{
    return n == 0 ? 1 : is_odd(n - 1);
}

APART int is_odd(int n)
{
    return n == 0 ? 0 : is_even(n - 1);
}

APART long by_pointer(long (*function)(long), long argument)
{
    return function(argument);
}

APART long solve(int round)
{
    long sum = fibonacci(10) + by_pointer(leaf, 300);
    for (int row = 0; row < 7; ++row)
        sum += leaf(100);
    return sum + is_even(round % 9);
}

int main(int count, char **words)
{
    const int rounds = count > 1 ? atoi(words[1]) : 1;
    const char *then = count > 2 ? words[2] : "";
    for (int round = 0; round < rounds; ++round)
        solve(round);
    puts("done");
    fflush(stdout);
    while (strcmp(then, "wait") == 0)
        pause();
    while (strcmp(then, "forever") == 0)
        solve(0);
    return 0;
}
