//! The code in blocks that keeps the calling context tree: at a function's entry, at calls and at returns.

use treering_x86::context::LOOK_UP_ROOM;
use treering_x86::lending::{Lending, clears_upper_parts};
use treering_x86::{Decoded, Flow, Register};

use crate::areas::tree_layout::SLOTS;
use crate::context::Contexts;
use crate::emit::counter_code::CounterCode;
use crate::emit::trace_writer::TraceWriter;

impl TraceWriter<'_, '_> {
    /// Leaves the current node before a return; rcx was saved. Registers stay held, except where the return
    /// removes more than its address from the stack.
    ///
    /// `bytes`: how many bytes the return removes. If the return is not that of the top activation, all
    /// frames end that were entered below the remaining stack: a function may have moved its return address
    /// down and then made a tail call to one with more arguments.
    pub(crate) fn write_leave(&mut self, block: u32, bytes: u16) {
        let Some(routines) = self.unit().context else { return };
        let holds = self.block(block).holds;
        let code = &mut self.emitter.code;
        if !holds {
            code.store_gs(SLOTS.r11, Register::R11);
            code.load_frame(&SLOTS);
        }
        let (site, behind) = code.leave_node(&SLOTS, routines.unwind);
        if bytes != 0 {
            code.load_gs(Register::R11, SLOTS.r11);
        }
        let mut otherwise = 0;
        let room = if bytes == 0 { 48 } else { 64 };
        self.unit().append_cold(room, |code| {
            let go_on = code.here();
            if bytes != 0 {
                code.add(Register::RSP, -i32::from(bytes));
            }
            code.load_frame(&SLOTS);
            code.jump(behind);
            otherwise = code.here();
            if bytes != 0 {
                code.add(Register::RSP, bytes.into());
            }
            code.store_address(SLOTS.go_on, go_on);
            code.jump(routines.unwind);
        });
        self.emitter.code.patch(site, otherwise);
    }

    /// Whether registers may be held throughout a block, in which no instruction may use them: from the
    /// target of a return or call up to the next one. Code that may be evicted often holds nothing.
    ///
    /// `goes_on`: if the block ends in a branch, the block behind it is reached from nowhere else.
    pub(crate) fn may_hold(&mut self, decoded: &[Decoded], counting: CounterCode, goes_on: bool) -> bool {
        let ends = match decoded[decoded.len() - 1].flow() {
            Flow::Call(_) | Flow::Return(0) => true,
            Flow::Branch { .. } => goes_on,
            _ => false,
        };
        if !ends || counting == CounterCode::AtEnd {
            return false;
        }
        let used = self.emitter.registers.used_by_all(decoded);
        !used.has(Register::RCX)
            && !used.has(Register::R11)
            && decoded
                .iter()
                .all(|one| !one.uses_gs() && Lending::of(one).is_none() && !clears_upper_parts(one))
            && self.space.program.is_steady(decoded[0].address())
    }

    /// The facts about calls, if trees are kept: without them, nothing is noted.
    pub(crate) fn contexts(&mut self) -> Option<&mut Contexts> {
        self.space.areas.has_trees().then_some(&mut self.space.context)
    }

    /// Writes the entry code of a function in front of its first block, if a called function begins there and
    /// trees are kept. Returns whether it did: the block is then reached with registers held.
    pub(crate) fn write_entering(&mut self, address: u64) -> bool {
        if !self.space.context.called.contains(&address) {
            return false;
        }
        let Some(callee) = self.space.callee(self.emitter.unit, address) else { return false };
        let stub = self.emitter.code.here();
        let look_up = self.emitter.code.enter_node(&SLOTS, &callee);
        let place = self.unit().append_cold(LOOK_UP_ROOM, |code| code.look_up(&SLOTS, &callee, &look_up));
        self.emitter.code.patch(look_up.site, place);
        let wanted = self.space.counting.propagation.wanted_level(address);
        let propagates = wanted.is_some() && self.space.program.is_steady(address);
        self.space.context.in_line.insert((address, propagates), stub);
        true
    }
}
