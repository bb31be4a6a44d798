//! The code by which a block records its accesses for the model.
//!
//! It begins with a check for room in the thread's buffer, and with the block's number. The words are written
//! before (or after) their instructions. No flag changes, and every register is restored at once, so that the
//! tracer can restore the program's state when a signal comes in between.

use treering_x86::{Decoded, Register};

use crate::cache::emitter::Emitter;
use crate::cache::link::ExitStub;
use crate::emit::trace_writer::TraceWriter;
use crate::model::Model;
use crate::model::plan::{Telling, Value};
use crate::sys::layout::{MODEL_BUFFER, MODEL_FIRST, MODEL_FULL_BYTE, MODEL_POSITION, MODEL_SECOND, REQUEST};

impl TraceWriter<'_, '_> {
    /// Plans the words of a block, and writes the code for its beginning.
    pub(crate) fn write_model_entry(&mut self, block: u32, decoded: &[Decoded]) {
        let Some(model) = &mut self.space.model else { return };
        let end = decoded[decoded.len() - 1];
        let words = model.plan_block(block, decoded, &end);
        let exit = self.space.cache.exits.add(ExitStub::Full(block));
        let request = self.unit().routines.request;
        let full = self.unit().append_cold(40, |code| {
            code.load_gs(Register::RCX, MODEL_FIRST);
            code.store_gs_value(REQUEST, exit);
            code.jump(request);
        });
        let told = self.emitter.write_step(0, |code| {
            code.store_gs(MODEL_FIRST, Register::RCX);
            code.load_gs_byte_into_rcx(MODEL_FULL_BYTE);
            code.jump_unless_key(full);
            code.load_gs(Register::RCX, MODEL_POSITION);
            code.store_gs_value_at_rcx(MODEL_BUFFER, block);
            code.add(Register::RCX, i32::from(words) + 1);
            code.store_gs(MODEL_POSITION, Register::RCX);
            let told = code.here();
            code.load_gs(Register::RCX, MODEL_FIRST);
            told
        });
        let entry = self.block(block).entry;
        if let Some(model) = &mut self.space.model {
            model.set_told_from(block, told - entry);
        }
    }
}

impl Emitter {
    /// Writes the words before an instruction, or after it.
    pub(crate) fn write_model_words(&mut self, model: Option<&Model>, instruction: usize, after: bool) {
        let Some(planner) = model.map(|model| &model.planner) else { return };
        let words = planner.words;
        let here =
            |telling: &&Telling| usize::from(telling.instruction) == instruction && telling.after == after;
        for telling in planner.tellings.iter().filter(here) {
            // The buffer position is behind the block's words already.
            let slot = MODEL_BUFFER.wrapping_sub(8 * u32::from(words - telling.word));
            self.write_step(0, |code| {
                match telling.value {
                    Value::Register(register) if register != Register::RCX => {
                        code.store_gs(MODEL_SECOND, Register::RCX);
                        code.load_gs(Register::RCX, MODEL_POSITION);
                        code.store_gs_at_rcx(slot, register);
                        code.load_gs(Register::RCX, MODEL_SECOND);
                    }
                    value => {
                        code.store_gs(MODEL_FIRST, Register::RAX);
                        match value {
                            Value::Register(register) => code.copy(Register::RAX, register),
                            Value::Address(operand) => {
                                // An operand that `lea` cannot express is not exact, which was noted.
                                operand.load_address(Register::RAX, code);
                            }
                        }
                        code.store_gs(MODEL_SECOND, Register::RCX);
                        code.load_gs(Register::RCX, MODEL_POSITION);
                        code.store_gs_at_rcx(slot, Register::RAX);
                        code.load_gs(Register::RCX, MODEL_SECOND);
                        code.load_gs(Register::RAX, MODEL_FIRST);
                    }
                }
            });
        }
    }
}
