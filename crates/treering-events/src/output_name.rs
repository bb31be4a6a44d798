//! Names of files in which marks stand for what is known only in the process that writes them.

use alloc::string::ToString as _;
use alloc::vec::Vec;

/// The meanings of the marks of a name.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// The number of the process, as digits: `%p`.
    pub process: &'a [u8],
    /// The name of the machine: `%h`.
    pub host: &'a [u8],
    /// The process's rank in a parallel program, as digits: `%r`.
    pub rank: &'a [u8],
}

/// The variables in which launchers of parallel programs (Open MPI, PMIx, MPICH, Slurm, MVAPICH, Flux, PALS) tell a
/// process its rank, the more special ones first.
pub const RANK_VARIABLES: [&str; 7] = [
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
];

/// The rank that the value of such a variable states; nothing if it is no number, which could lead elsewhere.
// Always inlined: programs linked with the code of `treering-pg` need nothing else of this crate.
#[inline(always)]
pub fn rank(value: &[u8]) -> Option<&[u8]> {
    (!value.is_empty() && value.iter().all(u8::is_ascii_digit)).then_some(value)
}

/// Gives the pieces of a name in which each mark is filled in to `put`. `%%` stands for `%`; any other `%` for itself.
pub fn fill_in(name: &[u8], marks: Marks, mut put: impl FnMut(&[u8])) {
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        let mut behind = bytes.clone();
        let filled = match (byte, behind.next()) {
            (b'%', Some(b'p')) => marks.process,
            (b'%', Some(b'h')) => marks.host,
            (b'%', Some(b'r')) => marks.rank,
            (b'%', Some(b'%')) => b"%",
            _ => {
                put(core::slice::from_ref(byte));
                continue;
            }
        };
        put(filled);
        bytes = behind;
    }
}

/// The file in which the kernel tells the name of the machine.
pub const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// A name in which the marks are filled in for a process. `host` is what [`HOST_NAME`] holds, and `variable` looks up a
/// variable of the environment.
pub fn filled(name: &[u8], process: u32, host: &[u8], variable: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<u8> {
    let process = process.to_string();
    let host: Vec<u8> =
        host.trim_ascii().iter().map(|&byte| if byte == b'/' { b'-' } else { byte }).collect();
    let ranks = RANK_VARIABLES.iter().filter_map(|name| variable(name));
    let own_rank = { ranks }.find(|value| rank(value).is_some());
    let marks = Marks { process: process.as_bytes(), host: &host, rank: own_rank.as_deref().unwrap_or(b"0") };
    let mut filled = Vec::new();
    fill_in(name, marks, |piece| filled.extend(piece));
    filled
}

/// Whether each process gets a name of its own.
pub fn tells_processes_apart(name: &[u8]) -> bool {
    let marks = |process| Marks { process, host: b"", rank: b"" };
    let mut length = 0;
    fill_in(name, marks(b"1"), |piece| length += piece.len());
    fill_in(name, marks(b""), |piece| length -= piece.len());
    length > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_marks(name: &str) -> alloc::string::String {
        let mut all = Vec::new();
        let marks = Marks { process: b"42", host: b"node7", rank: b"3" };
        fill_in(name.as_bytes(), marks, |piece| all.extend(piece));
        alloc::string::String::from_utf8(all).expect("it is text")
    }

    #[test]
    fn marks_are_filled_in_and_other_signs_stay() {
        assert_eq!(with_marks("run-%h-%r.%p.trg"), "run-node7-3.42.trg");
        assert_eq!(with_marks("%%p 100% %q %"), "%p 100% %q %");
        assert_eq!(with_marks("%%%p%%"), "%42%");
        assert_eq!(with_marks("jährlich"), "jährlich");
    }

    #[test]
    fn a_doubled_sign_tells_no_processes_apart() {
        assert!(tells_processes_apart(b"a%p") && tells_processes_apart(b"%%%p"));
        assert!(!tells_processes_apart(b"a%%p") && !tells_processes_apart(b"%r.trg"));
    }

    #[test]
    fn the_first_variable_that_holds_a_number_tells_the_rank() {
        let variable = |name: &str| match name {
            "OMPI_COMM_WORLD_RANK" => Some(b"../1".to_vec()),
            "PMI_RANK" => Some(b"3".to_vec()),
            "SLURM_PROCID" => Some(b"4".to_vec()),
            _ => None,
        };
        assert_eq!(filled(b"%h-%r-%p", 42, b"a/b\n", variable), b"a-b-3-42");
        assert_eq!(filled(b"%r", 42, b"", |_| None), b"0");
    }

    #[test]
    fn a_rank_is_a_number() {
        assert_eq!(rank(b"12"), Some(&b"12"[..]));
        assert!(rank(b"").is_none() && rank(b"../1").is_none());
    }
}
