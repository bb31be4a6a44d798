/* A stack machine: a small language with functions, recursion and errors. README.md describes it.
 *
 *     hooked FILE
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <treering/treering.h>

enum { MOST_WORDS = 4096, MOST_FUNCTIONS = 64, MOST_CELLS = 1024, DEEPEST = 1000 };

struct word {
    const char *text;
    size_t length;
    unsigned line;
};

/* A function: the words between its name and the semicolon. */
struct function {
    struct word name;
    size_t start, end;
    uint32_t id;
};

/* A function that is running, and what called it. */
struct call {
    const struct function *function;
    struct call *outer;
    unsigned depth;
    uint64_t token;
};

/* Where an error leads to, and what is restored there. */
struct handler {
    jmp_buf jump;
    struct handler *outer;
    struct call *calls;
    size_t cells;
};

static struct {
    const char *file;
    struct word words[MOST_WORDS];
    struct function functions[MOST_FUNCTIONS];
    long cells[MOST_CELLS];
    size_t word_count, function_count, cell_count;
    struct call *calls;
    struct handler *handlers;
} machine;

/* Leaves everything up to the last handler; without one the program ends. */
static _Noreturn void fail(const char *message)
{
    struct handler *handler = machine.handlers;
    if (handler == NULL) {
        fprintf(stderr, "error: %s\n", message);
        for (const struct call *call = machine.calls; call != NULL; call = call->outer)
            fprintf(stderr, "  in %.*s, defined in line %u\n", (int)call->function->name.length,
                    call->function->name.text, call->function->name.line);
        exit(1);
    }
    for (struct call *call = machine.calls; call != handler->calls; call = call->outer)
        treering_exception(call->token);
    longjmp(handler->jump, 1);
}

static int is(struct word word, const char *text)
{
    return strlen(text) == word.length && memcmp(word.text, text, word.length) == 0;
}

static void push(long value)
{
    if (machine.cell_count == MOST_CELLS)
        fail("the stack is full");
    machine.cells[machine.cell_count++] = value;
}

static long pop(void)
{
    if (machine.cell_count == 0)
        fail("the stack is empty");
    return machine.cells[--machine.cell_count];
}

static void run(size_t at, size_t end);

static uint64_t enter(struct function *function)
{
    if (function->id == 0)
        function->id = treering_function(function->name.text, function->name.length, machine.file,
                                         strlen(machine.file), function->name.line);
    uint64_t token = treering_enter(function->id);
    treering_argument_size(token, machine.cell_count > 0 ? (uint64_t)machine.cells[machine.cell_count - 1] : 0);
    return token;
}

static void call(struct function *function)
{
    struct call call = {function, machine.calls, machine.calls == NULL ? 1 : machine.calls->depth + 1, 0};
    if (call.depth > DEEPEST)
        fail("calls are too deep");
    if (treering_is_on())
        call.token = enter(function);
    machine.calls = &call;
    run(function->start, function->end);
    machine.calls = call.outer;
    treering_leave(call.token);
}

static struct function *find(struct word name)
{
    for (size_t i = machine.function_count; i-- > 0;)
        if (machine.functions[i].name.length == name.length
            && memcmp(machine.functions[i].name.text, name.text, name.length) == 0)
            return &machine.functions[i];
    fail("no such word");
}

/* Calls a function; pushes 1 when it succeeds, and 0 on the stack as it was before when not. */
static void attempt(struct word name)
{
    struct handler handler;
    handler.outer = machine.handlers;
    handler.calls = machine.calls;
    handler.cells = machine.cell_count;
    machine.handlers = &handler;
    int failed = setjmp(handler.jump);
    if (!failed)
        call(find(name));
    machine.handlers = handler.outer;
    if (failed) {
        machine.calls = handler.calls;
        machine.cell_count = handler.cells;
    }
    push(!failed);
}

/* The place behind the word that ends the branch at `at`: `then`, or `else` where it counts. */
static size_t skip(size_t at, size_t end, int to_else)
{
    for (int depth = 0; at < end; ++at) {
        struct word word = machine.words[at];
        if (depth == 0 && (is(word, "then") || (to_else && is(word, "else"))))
            return at + 1;
        depth += is(word, "if") - is(word, "then");
    }
    fail("an if without its then");
}

static void calculate(char operator)
{
    long right = pop(), left = pop();
    switch (operator) {
    case '+': push((long)((unsigned long)left + (unsigned long)right)); break;
    case '-': push((long)((unsigned long)left - (unsigned long)right)); break;
    case '*': push((long)((unsigned long)left * (unsigned long)right)); break;
    case '<': push(left < right); break;
    case '=': push(left == right); break;
    default:
        if (right == 0)
            fail("division by zero");
        push(right == -1 ? (long)(0 - (unsigned long)left) : left / right);
    }
}

static int is_number(struct word word)
{
    size_t digits = word.text[0] == '-';
    if (digits == word.length)
        return 0;
    while (digits < word.length && isdigit((unsigned char)word.text[digits]))
        ++digits;
    return digits == word.length;
}

/* Runs a word that is part of the language; 0 when it is not. */
static int run_own(struct word word)
{
    if (is_number(word)) {
        push(strtol(word.text, NULL, 10));
    } else if (word.length == 1 && strchr("+-*/<=", word.text[0]) != NULL) {
        calculate(word.text[0]);
    } else if (is(word, ".")) {
        printf("%ld\n", pop());
    } else if (is(word, "dup")) {
        long value = pop();
        push(value);
        push(value);
    } else if (is(word, "drop")) {
        pop();
    } else if (is(word, "swap")) {
        long right = pop(), left = pop();
        push(right);
        push(left);
    } else if (is(word, "profile-graph") || is(word, "profile-flat")) {
        treering_set_profiler(is(word, "profile-flat") ? TREERING_FLAT : TREERING_CALL_GRAPH);
    } else if (is(word, "profile-off")) {
        treering_clear_profiler();
    } else {
        return 0;
    }
    return 1;
}

/* Keeps the function whose name is at `at`; returns the place behind it. */
static size_t define(size_t at, size_t end)
{
    struct function function = {.start = at + 1, .end = at + 1};
    if (at >= end || machine.function_count == MOST_FUNCTIONS)
        fail("no name, or too many functions");
    function.name = machine.words[at];
    while (function.end < end && !is(machine.words[function.end], ";"))
        ++function.end;
    machine.functions[machine.function_count++] = function;
    return function.end + 1;
}

static void run(size_t at, size_t end)
{
    while (at < end) {
        struct word word = machine.words[at++];
        if (is(word, ":"))
            at = define(at, end);
        else if (is(word, "if"))
            at = pop() != 0 ? at : skip(at, end, 1);
        else if (is(word, "else"))
            at = skip(at, end, 0);
        else if (is(word, "try") && at < end)
            attempt(machine.words[at++]);
        else if (!is(word, "then") && !run_own(word))
            call(find(word));
    }
}

/* Cuts a text into words; from a backslash to the end of its line is a comment. */
static void cut(const char *text)
{
    for (unsigned line = 1; *text != '\0';) {
        size_t length = strcspn(text, " \t\r\n");
        if (*text == '\\')
            length = strcspn(text, "\n");
        else if (length > 0) {
            if (machine.word_count == MOST_WORDS)
                fail("the program is too long");
            machine.words[machine.word_count++] = (struct word){text, length, line};
        }
        line += text[length] == '\n';
        text += length + (text[length] != '\0');
    }
}

int main(int count, char **arguments)
{
    static char text[1 << 16];
    FILE *file = count == 2 ? fopen(arguments[1], "r") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: %s FILE\n", arguments[0]);
        return 2;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    machine.file = arguments[1];
    treering_clear_profiler();
    cut(text);
    run(0, machine.word_count);
    return 0;
}
