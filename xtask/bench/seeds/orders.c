/* The program that the changed SQLite runs: tables with an index, prepared and parsed statements. */
#include <stdio.h>
#include <stdlib.h>
#include "sqlite3.h"

static void run(sqlite3 *db, const char *sql) {
    if (sqlite3_exec(db, sql, 0, 0, 0) != SQLITE_OK) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

int main(void) {
    sqlite3 *db;
    sqlite3_stmt *insert, *find;
    long long sum = 0;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
    run(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, item TEXT);"
            "CREATE INDEX by_customer ON orders (customer, id); BEGIN");
    sqlite3_prepare_v2(db, "INSERT INTO orders (customer, item) VALUES (?, ?)", -1, &insert, 0);
    for (int i = 0; i < 1500; i++) {
        char item[32];
        snprintf(item, sizeof item, "item %d", i % 97);
        sqlite3_bind_int(insert, 1, (i * 7919) % 499);
        sqlite3_bind_text(insert, 2, item, -1, SQLITE_TRANSIENT);
        sqlite3_step(insert);
        sqlite3_reset(insert);
    }
    run(db, "COMMIT");
    sqlite3_prepare_v2(db, "SELECT count(*), sum(length(item)) FROM orders WHERE customer = ?", -1, &find, 0);
    for (int i = 0; i < 499; i++) {
        sqlite3_bind_int(find, 1, i);
        if (sqlite3_step(find) == SQLITE_ROW) sum += sqlite3_column_int64(find, 0) * sqlite3_column_int64(find, 1);
        sqlite3_reset(find);
    }
    for (int i = 0; i < 40; i++) run(db, "SELECT item, count(*) FROM orders GROUP BY item ORDER BY 2, item LIMIT 3");
    sqlite3_finalize(insert);
    sqlite3_finalize(find);
    sqlite3_close(db);
    printf("%lld\n", sum);
    return 0;
}
