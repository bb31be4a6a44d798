// With an argument, fewer instructions that take longer: divisions that wait for each other.
#include <stdio.h>

__attribute__((noinline)) unsigned long add(unsigned long x) {
    for (unsigned i = 0; i < 30000000; i++) {
        x += i;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

__attribute__((noinline)) unsigned long divide(unsigned long x) {
    for (unsigned i = 0; i < 13000000; i++) {
        x = ~0ul / (x | 1);
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

int main(int argc, char **argv) {
    (void)argv;
    printf("%d\n", (argc > 1 ? divide(argc) : add(argc)) == 0);
    return 0;
}
