/* A list that is kept sorted by insertion: n² moves. With LINEAR, items are put at its end. */
#include <stdlib.h>

#define LEAF __attribute__((noinline))

static unsigned next = 12345;

LEAF static unsigned draw(void) {
    next = next * 1103515245u + 12345u;
    return next >> 8;
}

LEAF static void move_up(unsigned *at) { at[1] = at[0]; }

LEAF static void insert(unsigned *items, size_t length, unsigned item) {
    size_t at = length;
#ifndef LINEAR
    while (at > 0 && items[at - 1] > item)
        move_up(&items[--at]);
#endif
    items[at] = item;
}

int main(int words, char **word) {
    size_t items = words > 1 ? strtoul(word[1], 0, 10) : 0;
    if (items == 0)
        return 3;
    unsigned *list = malloc((items + 1) * sizeof *list);
    for (size_t length = 0; length < items; length++)
        insert(list, length, draw());
    return list == 0;
}
