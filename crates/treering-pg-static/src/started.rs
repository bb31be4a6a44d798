//! Whether the program has begun: without a loader, resolvers of functions that have several versions run before the thread
//! has its variables. The first thing that runs afterwards says so.

use std::arch::global_asm;

global_asm!(
    ".section .data.treering_pg_started,\"aw\",@progbits",
    ".balign 4",
    ".globl treering_pg_started",
    ".hidden treering_pg_started",
    ".type treering_pg_started,@object",
    ".size treering_pg_started, 4",
    "treering_pg_started: .long 0",
    ".section .preinit_array,\"aw\",@preinit_array",
    ".balign 8",
    ".quad treering_pg_start",
    ".section .text.treering_pg_start,\"ax\",@progbits",
    ".type treering_pg_start,@function",
    "treering_pg_start:",
    "endbr64",
    "mov dword ptr [rip + treering_pg_started], 1",
    "ret",
    ".size treering_pg_start, . - treering_pg_start",
    ".text",
);
