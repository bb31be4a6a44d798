//! How much memory a file may ask for.

use crate::trg::Damage;

/// What may still be taken. Both allowances grow with the file, since only a small file that
/// asks for a lot is suspect: a few hundred bytes can hold 64 MiB of compressed zeros.
#[derive(Debug)]
pub(crate) struct Budget {
    payload: u64,
    columns: u64,
}

impl Budget {
    /// For a file of `length` bytes. Honest files hold 2 to 30 bytes of payload in a byte, and
    /// at most some 100 bytes of columns.
    pub(crate) fn new(length: usize) -> Self {
        let length = length as u64;
        Self {
            payload: (256 << 20) + length.saturating_mul(100),
            columns: (1 << 30) + length.saturating_mul(200),
        }
    }

    /// Before a payload is decompressed.
    pub(crate) fn unpack(&mut self, length: u32) -> Result<(), Damage> {
        take(&mut self.payload, length.into())
    }

    /// Whether columns of 8 bytes a number may have that many rows.
    pub(crate) fn allows(&self, rows: usize, columns: usize) -> bool {
        (rows as u64).saturating_mul(columns as u64).saturating_mul(8) <= self.columns
    }

    /// Before columns of 8 bytes a number are made longer.
    pub(crate) fn numbers(&mut self, rows: usize, columns: usize) -> Result<(), Damage> {
        take(&mut self.columns, (rows as u64).saturating_mul(columns as u64).saturating_mul(8))
    }
}

fn take(allowance: &mut u64, amount: u64) -> Result<(), Damage> {
    *allowance = allowance.checked_sub(amount).ok_or(Damage::TooMuch)?;
    Ok(())
}
