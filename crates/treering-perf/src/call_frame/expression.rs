//! DWARF expressions in call frame information, which may read registers and the stack.

use gimli::{Encoding, EndianSlice, EvaluationResult, Expression, LittleEndian, Location, Value};

use crate::registers::Registers;
use crate::stack_copy::StackCopy;
use crate::step::Step;

/// How many operations an expression may take: `DW_OP_bra` can loop.
const MOST_OPERATIONS: u32 = 1000;

/// Computes an expression with the registers of a frame, on top of `initial` where the rule says
/// so; or tells why the frame cannot be left.
pub(super) fn evaluate(
    expression: &[u8],
    encoding: Encoding,
    initial: Option<u64>,
    registers: &Registers,
    copy: &StackCopy,
) -> Result<u64, Step> {
    let lost = |_| Step::Lost;
    let expression = Expression(EndianSlice::new(expression, LittleEndian));
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(MOST_OPERATIONS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate().map_err(lost)?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = registers.get(register.0.into()).ok_or(Step::Lost)?;
                evaluation.resume_with_register(Value::Generic(value)).map_err(lost)?
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let value = copy.read_bytes(address, size).ok_or(Step::BeyondCopy)?;
                evaluation.resume_with_memory(Value::Generic(value)).map_err(lost)?
            }
            _ => return Err(Step::Lost),
        };
    }
    match evaluation.as_result().last().map(|piece| &piece.location) {
        Some(&Location::Address { address }) => Ok(address),
        _ => Err(Step::Lost),
    }
}
