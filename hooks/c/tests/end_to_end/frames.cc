// Functions whose frames vary while they run, and functions that exceptions leave: whatever the
// compiler, every call belongs to the function that made it.
#include <alloca.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

static volatile int sink;

struct Guard {
    APART ~Guard();
};

extern "C" {

APART void leaf() { sink = sink + 1; }

APART void after() { sink = sink + 1; }

/* Arrays of variable length, and alloca. */
APART int array(int n)
{
    char bytes[n];
    memset(bytes, 1, n);
    leaf();
    sink = bytes[n - 1];
    return sink;
}

APART int stack(int n)
{
    char *bytes = (char *)alloca(n);
    memset(bytes, 1, n);
    sink = bytes[n - 1];
    leaf();
    return sink;
}

APART void growing(int n)
{
    for (int i = 0; i < 2; ++i) {
        if (n)
            growing(n - 1);
        char *bytes = (char *)alloca(40 + n * 16);
        memset(bytes, n, 40);
        sink = bytes[5];
        leaf();
    }
}

struct alignas(64) Wide {
    char bytes[256];
};

/* A frame of its own alignment. */
APART void realigned(int n)
{
    Wide wide;
    memset(&wide, n, sizeof wide);
    char bytes[n];
    memset(bytes, 2, n);
    sink = wide.bytes[7] + bytes[1];
    leaf();
}

/* Arguments on the stack. */
APART void many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
    sink = a + b + c + d + e + f + g + h + i + j;
    leaf();
}

APART void arguments()
{
    for (int i = 0; i < 5; ++i) {
        many(1, 2, 3, 4, 5, 6, 7, 8, 9, i);
        after();
    }
}

/* Calls that may be jumps. */
APART int last(int n)
{
    leaf();
    return n + 1;
}

APART int before_last(int n)
{
    char bytes[n + 9];
    memset(bytes, 1, n + 9);
    sink = bytes[2];
    return last(n);
}

/* Called by a function that does not report itself. */
APART int compare(const void *a, const void *b)
{
    leaf();
    return *(const int *)a - *(const int *)b;
}

APART void sorted()
{
    int numbers[16];
    for (int i = 0; i < 16; ++i)
        numbers[i] = i * 7 % 16;
    qsort(numbers, 16, sizeof(int), compare);
    after();
}

/* Exceptions, through functions with frames that vary and with destructors to run. */
APART void thrower(int depth)
{
    leaf();
    if (depth == 0)
        throw 1;
    thrower(depth - 1);
    leaf();
}

APART void middle(int depth)
{
    Guard guard;
    char bytes[depth + 20];
    memset(bytes, 1, depth + 20);
    sink = bytes[3];
    thrower(depth);
}

APART void catcher(int depth)
{
    try {
        middle(depth);
    } catch (int) {
        after();
    }
    after();
}

APART void again()
{
    for (int i = 0; i < 10; ++i) {
        try {
            thrower(0);
        } catch (int) {
        }
    }
    after();
}
}

Guard::~Guard() { leaf(); }

int main()
{
    for (int i = 0; i < 100; ++i) {
        array(100 + i);
        after();
        stack(100 + i);
        after();
    }
    for (int i = 0; i < 30; ++i)
        catcher(i % 5);
    for (int i = 0; i < 7; ++i) {
        realigned(100 + i);
        after();
        before_last(i);
        after();
    }
    again();
    sorted();
    growing(3);
    arguments();
    return 0;
}
