//! How much memory a file may ask for.

/// The memory that may still be taken. The allowances grow with the file, since only a small file that asks
/// for a lot is suspect: a few kilobytes can hold 64 MiB of compressed zeros. They grow fast at first,
/// since a few kilobytes can honestly hold a recursion a million levels deep, and slowly from then on.
#[derive(Debug)]
pub(crate) struct Budget {
    payload: u64,
    columns: u64,
}

/// The file asks for more memory than a file of its size can have a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

impl Budget {
    /// For a file of `length` bytes. Honest `.trg` files hold 2 to 30 bytes of payload in a
    /// byte; any honest profile has at most some 100 bytes of columns for one.
    pub(crate) fn new(length: usize) -> Self {
        let length = length as u64;
        let grown = |start: u64, fast: u64, from: u64, slowly: u64| {
            let fast = (start << 20).saturating_add(length.saturating_mul(fast));
            fast.min((from << 20).saturating_add(length.saturating_mul(slowly)))
        };
        Self { payload: grown(16, 4000, 128, 100), columns: grown(64, 8000, 512, 200) }
    }

    /// Before a payload of `length` bytes is decompressed.
    pub(crate) fn unpack(&mut self, length: u32) -> Result<(), OverBudget> {
        take(&mut self.payload, length.into())
    }

    /// How many more bytes may be kept: no intermediate value may be larger.
    pub(crate) fn room(&self) -> u64 {
        self.columns
    }

    /// Charges `bytes` that will be kept, before they are allocated.
    pub(crate) fn bytes(&mut self, bytes: u64) -> Result<(), OverBudget> {
        take(&mut self.columns, bytes)
    }

    /// Before columns of 8 bytes a number get that many rows more.
    pub(crate) fn numbers(&mut self, rows: usize, columns: usize) -> Result<(), OverBudget> {
        take(&mut self.columns, numbers(rows, columns))
    }

    /// Whether columns of 8 bytes a number may have that many rows more.
    pub(crate) fn allows(&self, rows: usize, columns: usize) -> bool {
        numbers(rows, columns) <= self.columns
    }
}

/// The limits of a reader whose values contain each other.
#[derive(Debug)]
pub(crate) struct NestingLimits {
    pub(crate) budget: Budget,
    depth: usize,
    deepest: usize,
}

/// A value exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverLimit {
    Memory,
    Depth,
}

impl NestingLimits {
    /// For values that are nested at most `deepest` times.
    pub(crate) fn new(budget: Budget, deepest: usize) -> Self {
        Self { budget, depth: 0, deepest }
    }

    /// Before a value of `numbers` times eight bytes is made.
    pub(crate) fn enter(&mut self, numbers: usize) -> Result<(), OverLimit> {
        self.budget.numbers(1, numbers).map_err(|OverBudget| OverLimit::Memory)?;
        self.depth += 1;
        if self.depth > self.deepest { Err(OverLimit::Depth) } else { Ok(()) }
    }

    /// After a value whose beginning was stated by [`enter`](Self::enter).
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }
}

fn numbers(rows: usize, columns: usize) -> u64 {
    (rows as u64).saturating_mul(columns as u64).saturating_mul(8)
}

fn take(allowance: &mut u64, amount: u64) -> Result<(), OverBudget> {
    *allowance = allowance.checked_sub(amount).ok_or(OverBudget)?;
    Ok(())
}
