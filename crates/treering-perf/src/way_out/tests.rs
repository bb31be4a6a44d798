use super::*;

const START: u64 = 0x1000;

fn exits_of(code: &[u8], at: u64, width: Width) -> Exits {
    let read = |address: u64, bytes: &mut [u8]| {
        let all: Vec<u8> = std::iter::repeat_n(0xcc, START as usize).chain(code.iter().copied()).collect();
        let rest = all.get(address as usize..).unwrap_or_default();
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        length
    };
    exits(&read, width, START + at, None)
}

fn exits_at(code: &[u8], at: u64) -> Exits {
    exits_of(code, at, Width::Bits64)
}

/// A word of the stack: above the stack pointer (7), or the base pointer (6).
fn word(register: usize, offset: i64) -> Value {
    Value { register, offset, loaded: Some(0) }
}

fn at(register: usize, offset: i64) -> Value {
    Value { register, offset, loaded: None }
}

/// push %rbx; push %r12; sub $40,%rsp; nop; add $40,%rsp; pop %r12; pop %rbx; ret
const PUSHES: &[u8] =
    &[0x53, 0x41, 0x54, 0x48, 0x83, 0xec, 40, 0x90, 0x48, 0x83, 0xc4, 40, 0x41, 0x5c, 0x5b, 0xc3];

#[test]
fn the_return_address_is_found_behind_pushed_registers() {
    let exits = exits_at(PUSHES, 7);
    let restored = vec![(3, word(7, 48)), (12, word(7, 40))];
    assert_eq!(exits.ways_out, [WayOut { back: at(7, 56), popped: 0, restored }]);
    assert!(!exits.ends_thread && !exits.keeps_frame);
}

#[test]
fn a_register_that_is_not_pushed_yet_is_not_taken_from_the_stack() {
    let exits = exits_at(PUSHES, 0);
    assert_eq!(exits.ways_out, [WayOut { back: at(7, 0), popped: 0, restored: Vec::new() }]);
    let exits = exits_at(PUSHES, 1);
    let restored = vec![(3, word(7, 0))];
    assert_eq!(exits.ways_out, [WayOut { back: at(7, 8), popped: 0, restored }]);
}

#[test]
fn a_frame_pointer_leads_past_an_unknown_change_of_the_stack_pointer() {
    // mov -8(%rbp),%eax; and $-32,%rsp; leave; ret
    let exits = exits_at(&[0x8b, 0x45, 0xf8, 0x48, 0x83, 0xe4, 0xe0, 0xc9, 0xc3], 0);
    let restored = vec![(6, word(6, 0))];
    assert_eq!(exits.ways_out, [WayOut { back: at(6, 8), popped: 0, restored }]);
    assert!(exits.keeps_frame && exits.ways_out[0].is_frame_pointer_link(Width::Bits64));
}

#[test]
fn a_stack_that_was_aligned_anew_is_left_by_the_register_that_knows_the_old_one() {
    // mov -8(%rbp),%r10; leave; lea -8(%r10),%rsp; ret
    let exits = exits_at(&[0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x49, 0x8d, 0x62, 0xf8, 0xc3], 0);
    let back = Value { register: 6, offset: -8, loaded: Some(-8) };
    assert_eq!(exits.ways_out, [WayOut { back, popped: 0, restored: vec![(6, word(6, 0))] }]);
}

#[test]
fn code_behind_a_call_that_may_not_return_comes_last() {
    // je +6; call +0; (another function:) ret $16; ret
    let exits = exits_at(&[0x74, 8, 0xe8, 0, 0, 0, 0, 0xc2, 16, 0, 0xc3], 0);
    assert_eq!(exits.ways_out.iter().map(|way| way.popped).collect::<Vec<_>>(), [0, 16]);
}

#[test]
fn a_stub_returns_to_where_it_was_called() {
    // endbr64; jmp *0x100(%rip)
    let exits = exits_at(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 1, 0, 0], 0);
    assert_eq!(exits.ways_out, [WayOut { back: at(7, 0), popped: 0, restored: Vec::new() }]);
}

#[test]
fn a_switch_is_no_way_out() {
    // notrack jmp *%rax
    let exits = exits_at(&[0x3e, 0xff, 0xe0], 0);
    assert_eq!(exits, Exits::default());
}

#[test]
fn code_that_can_only_end_its_thread_never_returns() {
    // mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall; hlt
    let ends = exits_at(&[0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05, 0xf4], 0);
    assert!(ends.ends_thread && !ends.halts && ends.ways_out.is_empty());
    // The same for `write`, behind which nothing is known; and an endless loop.
    assert!(!exits_at(&[0xb0, 1, 0x0f, 0x05], 0).ends_thread);
    assert!(!exits_at(&[0xeb, 0xfe], 0).ends_thread);
    assert!(exits_at(&[0xf4], 0).halts);
}

#[test]
fn code_of_32_bits_returns_as_well() {
    // push %ebx; sub $8,%esp; nop; add $8,%esp; pop %ebx; ret $12
    let code = [0x53, 0x83, 0xec, 8, 0x90, 0x83, 0xc4, 8, 0x5b, 0xc2, 12, 0];
    let exits = exits_of(&code, 4, Width::Bits32);
    let restored = vec![(3, word(4, 8))];
    assert_eq!(exits.ways_out, [WayOut { back: at(4, 12), popped: 12, restored }]);
    let exits = exits_of(&code, 0, Width::Bits32);
    assert_eq!(exits.ways_out, [WayOut { back: at(4, 0), popped: 12, restored: Vec::new() }]);
}

#[test]
fn no_code_is_no_way_out() {
    assert_eq!(exits_at(&[], 0), Exits::default());
    assert_eq!(exits_at(&[0x06], 0), Exits::default());
}
