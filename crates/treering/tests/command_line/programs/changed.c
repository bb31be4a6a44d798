/* With CHANGED, parse interns every word twice, and a hash takes more steps: one more call, and a dearer one. */
#include <stdio.h>

__attribute__((noinline)) static unsigned hash(unsigned word) {
    unsigned steps = 10;
#ifdef CHANGED
    steps = 25;
#endif
    for (unsigned step = 0; step < steps; step++) {
        word = word * 31 + step;
        __asm__ volatile("" : "+r"(word));
    }
    return word;
}

__attribute__((noinline)) static unsigned intern(unsigned word) {
    for (unsigned step = 0; step < 200; step++) {
        word ^= word << 5;
        __asm__ volatile("" : "+r"(word));
    }
    return word;
}

__attribute__((noinline)) static unsigned parse(unsigned word) {
    word = intern(hash(word));
#ifdef CHANGED
    word = intern(word);
#endif
    __asm__ volatile("" : "+r"(word));
    return word;
}

int main(void) {
    unsigned sum = 0;
    for (unsigned word = 0; word < 1000; word++)
        sum += parse(word);
    printf("%u\n", sum != 0);
    return 0;
}
