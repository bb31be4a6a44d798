//! Whether the program has begun: the loader has given it its thread variables before it runs any of its code.

use std::arch::global_asm;

global_asm!(
    ".section .data.treering_pg_started,\"aw\",@progbits",
    ".balign 4",
    ".globl treering_pg_started",
    ".hidden treering_pg_started",
    ".type treering_pg_started,@object",
    ".size treering_pg_started, 4",
    "treering_pg_started: .long 1",
    ".text",
);
