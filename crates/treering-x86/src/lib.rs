//! x86-64 machine code, decoded and encoded as functions of bytes.
//!
//! It tells the translator where control goes after an instruction ([`Flow`]), which flags and registers it leaves
//! dead ([`flags`], [`registers`]), and how to encode it for another place ([`rewrite`]). [`Assembler`] writes the
//! few instructions that the translator adds, and [`interpret`] executes those again as a function of a machine's
//! state.
//!
//! It refuses to know about processes, caches and counters. Only 64-bit code is decoded. An instruction that cannot
//! be executed at another address is a [`Refusal`].
//!
//! ```
//! use treering_x86::{Decoded, Flow, decode};
//!
//! // test edi, edi; je +5; mov eax, 1
//! let code = [0x85, 0xff, 0x74, 0x05, 0xb8, 1, 0, 0, 0];
//! let mut block: Vec<Decoded> = Vec::new();
//! decode(&code, 0x1000, 48, &mut block);
//! assert_eq!(block.len(), 2);
//! assert_eq!(block[1].flow(), Flow::Branch { condition: 4, target: 0x1009 });
//! ```
#![forbid(unsafe_code)]

mod assembler;
pub mod context;
mod decode;
pub mod disassembly;
pub mod flags;
pub mod form;
pub mod interpret;
pub mod kind;
pub mod lending;
pub mod memory;
pub mod processor;
mod register;
pub mod registers;
pub mod rewrite;

pub use assembler::{Assembler, LINE, relative_to};
pub use decode::{Decoded, Flow, LONGEST_INSTRUCTION, Refusal, decode, decode_while, is_cut_short};
pub use register::Register;
