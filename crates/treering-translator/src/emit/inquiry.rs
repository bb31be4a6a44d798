//! Instructions whose answer is the tracer's: those that tell of the processor or the time, where these are held.
//!
//! The thread asks the tracer, and goes on behind the instruction. rax and rcx get their values where the request
//! restores them; other registers, from two slots of the area.

use treering_x86::processor::Inquiry;
use treering_x86::{Decoded, Register, rewrite};

use crate::cache::link::ExitStub;
use crate::emit::trace_writer::TraceWriter;
use crate::sys::layout::{ASKED_FIRST, ASKED_SECOND, REQUEST, SLOTS};

impl TraceWriter<'_, '_> {
    /// Whether a block has an instruction whose answer is the tracer's.
    pub(crate) fn has_inquiry(&self, decoded: &[Decoded]) -> bool {
        decoded.iter().any(|one| self.space.surroundings.answered(one).is_some())
    }

    /// Writes such an instruction.
    pub(crate) fn write_inquiry(&mut self, inquiry: Inquiry, one: &Decoded, bytes: &[u8]) {
        const RBX: Register = Register::new(3);
        const RDX: Register = Register::new(2);
        let start = self.emitter.code.here();
        if inquiry == Inquiry::Save {
            // The mask is narrowed for the instruction's time.
            self.emitter.code.store_gs(ASKED_FIRST, Register::RAX);
            self.emitter.code.store_gs(ASKED_SECOND, RDX);
        }
        let request = self.unit().routines.request;
        let exit = self.space.cache.exits.add(ExitStub::None);
        let code = &mut self.emitter.code;
        code.store_gs_value(REQUEST, exit);
        code.jump(request);
        let resume = code.here();
        self.space.cache.exits.list[exit as usize] = ExitStub::Inquiry(inquiry, resume);
        match inquiry {
            Inquiry::Cpuid => {
                code.load_gs(RBX, ASKED_FIRST);
                code.load_gs(RDX, ASKED_SECOND);
            }
            Inquiry::Xgetbv | Inquiry::Clock | Inquiry::ClockAndProcessor => code.load_gs(RDX, ASKED_SECOND),
            Inquiry::Processor(register) => code.load_gs(register, ASKED_FIRST),
            Inquiry::Save => {
                code.set_low(RDX, 0);
                if let Err(refusal) = rewrite::copy(one, bytes, &SLOTS, &mut self.emitter.registers, code) {
                    self.write_refusal(one.address(), refusal);
                }
                self.emitter.code.load_gs(Register::RAX, ASKED_FIRST);
                self.emitter.code.load_gs(RDX, ASKED_SECOND);
            }
        }
        let emitted = self.emitter.code.here() - start;
        self.emitter.steps.push(one.len(), emitted);
    }
}
