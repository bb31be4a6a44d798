//! The code that keeps the tree, as a disassembler reads it.

use iced_x86::{Decoder, DecoderOptions, Formatter as _, IntelFormatter};

use super::child::{mark_of_lasts, place_of_lasts};
use super::*;
use crate::decode;
use crate::interpret::{Machine, Place, Stepped, step};
use crate::{Assembler, Register};

const SLOTS: ContextSlots = ContextSlots {
    rcx: 0x0,
    r11: 0x8,
    top: 0x10,
    go_on: 0x18,
    again: 0x20,
    parent: 0x28,
    callee: 0x30,
    rax: 0x38,
    rdx: 0x40,
    place: 0x48,
    flags: 0x50,
    mask: 0x58,
    next: 0x60,
    end: 0x68,
    table: 0x1000,
    last: 0x70,
    mark: 0x90,
    lasts: 0x4000,
    first: 0x9020,
    unmatched_returns: 0x78,
    handlers: 0x80,
    fold: 0x98,
};

const CALLEE: Callee = Callee { number: 6, last: 6, one: 0x2000, find: 0x3000 };

fn listing(write: impl FnOnce(&mut Assembler)) -> Vec<String> {
    let mut code = Assembler::new(0x1000);
    write(&mut code);
    let mut formatter = IntelFormatter::new();
    let mut lines = Vec::new();
    for instruction in &mut Decoder::with_ip(64, code.bytes(), 0x1000, DecoderOptions::NONE) {
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        lines.push((instruction.ip(), text));
    }
    // Jumps within the code say which line they lead to.
    let places: Vec<_> = lines.iter().map(|&(address, _)| address).collect();
    let told = lines.into_iter().map(|(_, text)| {
        let target = text.split_once("0000").and_then(|(_, digits)| {
            u64::from_str_radix(digits.trim_start_matches('0').trim_end_matches('h'), 16).ok()
        });
        let line = target.and_then(|target| places.iter().position(|&place| place == target));
        match (line, text.split_once(' ')) {
            (Some(line), Some((jump, _))) => format!("{jump} line {line}"),
            _ => text,
        }
    });
    told.collect()
}

#[test]
fn leaving_changes_no_flag() {
    let lines = listing(|code| assert!(code.leave_node(&SLOTS, 0x5000).1 > 0x1000));
    assert_eq!(
        lines,
        [
            "mov rcx,gs:[r11+18h]",
            "not rcx",
            "lea rcx,[rsp+rcx+1]",
            "jrcxz line 5",
            "jmp 0000000000005000h",
            "mov ecx,gs:[r11+10h]",
            "vpaddq xmm15,xmm15,gs:[rcx]",
            "vmovaps gs:[rcx],xmm15",
            "vmovaps xmm15,gs:[r11]",
            "lea r11,[r11-20h]",
            "mov gs:[10h],r11",
        ]
    );
}

/// Where a line stands.
fn line(lines: &[String], text: &str) -> usize {
    let found = lines.iter().position(|line| line == text);
    found.unwrap_or_else(|| panic!("{text} is there: {lines:#?}"))
}

/// Enters a function whose code lies elsewhere.
fn enter_elsewhere(code: &mut Assembler) {
    let look_up = code.enter_node(&SLOTS, &CALLEE);
    code.release(&SLOTS);
    assert!(code.jump(0x5000) > 0x1000);
    code.patch(look_up.site, code.here());
    code.look_up(&SLOTS, &CALLEE, &look_up);
}

#[test]
fn entering_finds_a_recent_child_or_asks() {
    let lines = listing(enter_elsewhere);
    let entry = line(&lines, "jmp 0000000000005000h");
    assert_eq!(
        lines[..=entry],
        [
            "mov gs:[0],rcx",
            "mov gs:[8],r11",
            "mov r11,gs:[10h]",
            "mov ecx,gs:[r11+10h]",
            "mov ecx,gs:[rcx+30h]",
            "vmovaps gs:[r11+20h],xmm15",
            "mov gs:[r11+30h],ecx",
            "mov ecx,gs:[rcx+10h]",
            "lea ecx,[rcx-6]",
            "jecxz line 11",
            &format!("jmp line {}", entry + 1),
            "vmovaps xmm15,[2000h]",
            "mov gs:[r11+38h],rsp",
            "lea r11,[r11+20h]",
            "mov gs:[10h],r11",
            "mov rcx,gs:[0]",
            "mov r11,gs:[8]",
            "jmp 0000000000005000h",
        ]
    );
    let ask = line(&lines, "mov gs:[28h],r11");
    let found = entry + 2;
    assert_eq!(
        lines[entry + 1..ask],
        [
            &format!("jmp line {}", found + 4),
            // With the child in r11.
            "mov rcx,r11",
            "mov r11,gs:[10h]",
            "mov gs:[r11+30h],ecx",
            "jmp line 11",
            // Not the one that its parent says: perhaps the one that was entered last.
            "mov r11,gs:[10h]",
            "mov r11d,gs:[r11+10h]",
            "movzx ecx,r11w",
            "mov ecx,gs:[rcx+4030h]",
            "not rcx",
            "lea rcx,[r11+rcx+1]",
            &format!("jrcxz line {}", found + 12),
            &format!("jmp line {ask}"),
            "movzx ecx,r11w",
            "mov ecx,gs:[rcx+4034h]",
            "mov gs:[r11+30h],ecx",
            "mov r11,rcx",
            &format!("jmp line {found}"),
        ]
    );
    assert_eq!(line(&lines, "jmp 0000000000003000h"), lines.len() - 1);
}

#[test]
fn code_that_holds_registers_may_enter_behind_the_saving_of_them() {
    let mut code = Assembler::new(0x1000);
    code.hold(&SLOTS);
    assert_eq!(code.bytes().len() as u64, HOLD);
    let hold = code.bytes().to_vec();
    code.restart(0x1000);
    code.enter_node(&SLOTS, &CALLEE);
    assert!(code.bytes().starts_with(&hold));
}

#[test]
fn a_jump_takes_the_place_of_the_one_that_jumps() {
    let write =
        |code: &mut Assembler| assert!(code.replace_node(&SLOTS, &CALLEE, 0x5000, Some(0x6000))[0] > 0x1000);
    let lines = listing(write);
    let plain = line(&lines, "jmp 0000000000005000h");
    let compared = line(&lines, &format!("jrcxz line {}", plain + 1));
    assert_eq!(
        lines[compared - 1..=compared + 4],
        [
            "lea rcx,[rsp+rcx+1]",
            &format!("jrcxz line {}", plain + 1),
            "bswap rcx",
            "movzx ecx,cl",
            &format!("jecxz line {}", compared + 5),
            &format!("jmp line {}", plain - 2),
        ]
    );
    assert_eq!(line(&lines, "jmp 0000000000006000h"), compared + 7);
    let lines = lines[plain + 1..].to_vec();
    let entry = line(&lines, "jmp 0000000000005000h");
    let same = line(&lines, &format!("jecxz line {}", plain + 1 + entry - 2));
    assert_eq!(lines[same - 3..same], ["mov ecx,gs:[r11+10h]", "mov ecx,gs:[rcx+10h]", "lea ecx,[rcx-6]"]);
    assert_eq!(lines[same + 1], "mov r11d,gs:[r11-10h]");
    assert_eq!(
        lines[entry - 9..entry],
        [
            "mov rcx,gs:[10h]",
            "mov ecx,gs:[rcx+10h]",
            "vpaddq xmm15,xmm15,gs:[rcx]",
            "vmovaps gs:[rcx],xmm15",
            "vmovaps xmm15,[2000h]",
            "mov rcx,gs:[10h]",
            "mov gs:[rcx+10h],r11d",
            "mov rcx,gs:[0]",
            "mov r11,gs:[8]",
        ]
    );
}

#[test]
fn looking_up_saves_what_it_uses() {
    let lines = listing(|code| {
        // Behind the instructions that save registers, all registers may be in use.
        assert_eq!(code.find_child(&SLOTS), 0x1000 + 31);
    });
    assert_eq!(
        lines,
        [
            "mov gs:[38h],rax",
            "lahf",
            "seto al",
            "mov gs:[50h],rax",
            "mov gs:[40h],rdx",
            "mov rdx,gs:[28h]",
            "shl rdx,20h",
            "mov ecx,gs:[30h]",
            "or rdx,rcx",
            "mov rcx,9E3779B97F4A7C15h",
            "imul rcx,rdx",
            "shr rcx,26h",
            "and rcx,gs:[58h]",
            "mov r11d,gs:[rcx*4+1000h]",
            "test r11d,r11d",
            "je line 20",
            "cmp gs:[r11+10h],rdx",
            "je line 27",
            "inc rcx",
            "jmp line 12",
            "mov r11,gs:[60h]",
            "cmp r11,gs:[68h]",
            "jae line 43",
            "mov gs:[rcx*4+1000h],r11d",
            "mov gs:[r11+10h],rdx",
            "lea rcx,[r11+40h]",
            "mov gs:[60h],rcx",
            "mov rdx,gs:[28h]",
            "mov rax,r11",
            "shl rax,20h",
            "or rax,rdx",
            "add rdx,gs:[48h]",
            "mov gs:[rdx],r11d",
            "movzx ecx,ax",
            "or rax,gs:[90h]",
            "add rcx,gs:[70h]",
            "mov gs:[rcx+4000h],rax",
            "mov rdx,gs:[40h]",
            "mov rax,gs:[50h]",
            "add al,7Fh",
            "sahf",
            "mov rax,gs:[38h]",
            "jmp qword ptr gs:[18h]",
            // There is no room: the node that stands for such children has one, or that is to be made.
            "mov r11,gs:[98h]",
            "test r11d,r11d",
            "je line 54",
            "mov rcx,rdx",
            "shr rcx,20h",
            "cmp ecx,r11d",
            "je line 54",
            "shl r11,20h",
            "mov edx,edx",
            "or rdx,r11",
            "jmp line 9",
            "mov rdx,gs:[40h]",
            "mov rax,gs:[50h]",
            "add al,7Fh",
            "sahf",
            "mov rax,gs:[38h]",
        ]
    );
}

#[test]
fn frames_below_the_stack_pointer_are_left() {
    let lines = listing(|code| {
        let (start, end) = code.leave_frames(&SLOTS, |code| code.jump_gs(0x88));
        assert_eq!((start, end), (0x1050, 0x1094));
    });
    assert_eq!(
        lines,
        [
            "mov rcx,gs:[80h]",
            "jrcxz line 3",
            "jmp qword ptr gs:[88h]",
            "mov rcx,gs:[r11+18h]",
            "not rcx",
            "lea rcx,[rsp+rcx+1]",
            "bswap rcx",
            "movzx ecx,cl",
            "jrcxz line 13",
            "mov rcx,gs:[78h]",
            "lea rcx,[rcx+1]",
            "mov gs:[78h],rcx",
            "jmp qword ptr gs:[18h]",
            "lea ecx,[r11-9020h]",
            "jecxz line 2",
            "lea ecx,[r11-9020h]",
            "jecxz line 29",
            "mov ecx,gs:[r11+10h]",
            "vpaddq xmm15,xmm15,gs:[rcx]",
            "vmovaps gs:[rcx],xmm15",
            "vmovaps xmm15,gs:[r11]",
            "lea r11,[r11-20h]",
            "mov gs:[10h],r11",
            "mov rcx,gs:[r11+18h]",
            "not rcx",
            "lea rcx,[rsp+rcx+1]",
            "bswap rcx",
            "movzx ecx,cl",
            "jrcxz line 15",
            "jmp qword ptr gs:[18h]",
        ]
    );
}

#[test]
fn no_two_callees_have_the_same_last_enterings() {
    let of = |number| (place_of_lasts(number), mark_of_lasts(number));
    let all: std::collections::HashSet<_> = (0..MOST_LASTS).map(of).collect();
    assert_eq!(all.len(), MOST_LASTS as usize);
    assert!(all.iter().all(|&(place, mark)| place <= LASTS - GROUP + NODE - 8 && mark < NODE));
}

#[test]
fn nodes_are_spread_over_the_table() {
    // A function that is called from a thousand others has as many entries.
    let places = (0..1000).map(|parent| table_place((0x1000 + parent * u64::from(NODE)) << 32 | 7) % 2048);
    let different: std::collections::HashSet<u64> = places.collect();
    assert!(different.len() > 990, "{}", different.len());
}

#[test]
fn pieces_fit_into_their_room_wherever_they_begin() {
    for start in 0..64 {
        let length = |write: &dyn Fn(&mut Assembler)| {
            let mut code = Assembler::new(0x1_0000_1000 + start);
            write(&mut code);
            code.bytes().len() as u64
        };
        let enter = length(&enter_elsewhere);
        let look_up = length(&|code| {
            let entered = code.enter_node(&SLOTS, &CALLEE);
            code.restart(0x1_0000_1000 + start);
            code.look_up(&SLOTS, &CALLEE, &entered);
        });
        let replace = length(&|code| _ = code.replace_node(&SLOTS, &CALLEE, 0x5000, Some(0x6000)));
        let check = length(&|code| _ = code.check_stack(&SLOTS, 0x5000, 0x6000));
        assert!(enter <= ENTER_ROOM, "{enter}");
        assert!(look_up <= LOOK_UP_ROOM, "{look_up}");
        assert!(replace <= REPLACE_ROOM, "{replace}");
        assert!(check <= CHECK_ROOM, "{check}");
    }
}

#[test]
fn the_count_is_moved_to_slots_and_added_to() {
    let lines = listing(|code| {
        code.store_count(0x10);
        code.load_count(0x20);
        code.add_to_count(0x2000);
        code.take_from_count(0x2000);
        code.clear_slot(0x50);
    });
    assert_eq!(
        lines,
        [
            "vmovaps gs:[10h],xmm15",
            "vmovaps xmm15,gs:[20h]",
            "vpaddq xmm15,xmm15,[2000h]",
            "vpsubq xmm15,xmm15,[2000h]",
            "mov qword ptr gs:[50h],0",
        ]
    );
}

/// A thread that was stopped among them is taken on by carrying them out: there must be none that cannot be.
#[test]
fn every_instruction_but_those_that_look_up_can_be_carried_out() {
    struct Anything;
    impl Machine for Anything {
        fn register(&self, _: Register) -> u64 {
            0
        }
        fn set_register(&mut self, _: Register, _: u64) {}
        fn load(&mut self, _: Place) -> Option<u64> {
            Some(0)
        }
        fn store(&mut self, _: Place, _: u64) -> Option<()> {
            Some(())
        }
        fn vector(&mut self) -> Option<[u64; 2]> {
            Some([0; 2])
        }
        fn set_vector(&mut self, _: [u64; 2]) -> Option<()> {
            Some(())
        }
    }
    let pieces: [&dyn Fn(&mut Assembler); 6] = [
        &|code| _ = code.take_from_count(0x5000),
        &enter_elsewhere,
        &|code| _ = code.replace_node(&SLOTS, &CALLEE, 0x5000, Some(0x6000)),
        &|code| _ = code.check_stack(&SLOTS, 0x5000, 0x6000),
        &|code| _ = code.leave_node(&SLOTS, 0x5000),
        &|code| _ = code.leave_frames(&SLOTS, |code| _ = code.jump(0x5000)),
    ];
    for write in pieces {
        let mut code = Assembler::new(0x1000);
        write(&mut code);
        for instruction in &mut Decoder::with_ip(64, code.bytes(), 0x1000, DecoderOptions::NONE) {
            let from = (instruction.ip() - 0x1000) as usize;
            let stepped = step(&code.bytes()[from..], instruction.ip(), &mut Anything);
            assert!(matches!(stepped, Stepped::To(_)), "{instruction}");
        }
    }
}

#[test]
fn instructions_that_raise_the_stack_are_told_apart() {
    let raises = |bytes: &[u8]| {
        let mut block = Vec::new();
        decode(bytes, 0, 1, &mut block);
        raises_stack(&block[0])
    };
    // mov rsp, r8; pop rcx; leave; add rsp, 8; lea rsp, [rsp + 8]
    for bytes in
        [&[0x4c, 0x89, 0xc4][..], &[0x59], &[0xc9], &[0x48, 0x83, 0xc4, 8], &[0x48, 0x8d, 0x64, 0x24, 8]]
    {
        assert!(raises(bytes), "{bytes:x?}");
    }
    // push rsp; sub rsp, 8; mov rax, rsp; cmp rsp, rax
    for bytes in [&[0x54][..], &[0x48, 0x83, 0xec, 8], &[0x48, 0x89, 0xe0], &[0x48, 0x39, 0xc4]] {
        assert!(!raises(bytes), "{bytes:x?}");
    }
}
