//! A process that uses a folder, as the folder's list of users tells of it.

use std::fmt;
use std::str::FromStr;

/// A process, told apart from a later one with the same number by its start, and from one of another container by the
/// namespace of its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    boot: String,
    namespace: String,
    pid: u32,
    start_ticks: u64,
}

impl User {
    /// A process that runs.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Self { boot: boot()?, namespace: namespace()?, pid, start_ticks: start_ticks(pid)? })
    }

    /// Whether it has ended. Of a process in another namespace that is not known, unless the machine was started anew.
    pub(crate) fn has_ended(&self) -> bool {
        let (Some(boot), Some(namespace)) = (boot(), namespace()) else { return false };
        boot != self.boot || (namespace == self.namespace && start_ticks(self.pid) != Some(self.start_ticks))
    }
}

impl fmt::Display for User {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {} {}", self.boot, self.namespace, self.pid, self.start_ticks)
    }
}

impl FromStr for User {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = line.split(' ').collect();
        let [boot, namespace, pid, start_ticks] = parts[..] else { return Err(()) };
        let number = |text: &str| text.parse().map_err(drop);
        let (pid, start_ticks) = (pid.parse().map_err(drop)?, number(start_ticks)?);
        Ok(Self { boot: boot.to_owned(), namespace: namespace.to_owned(), pid, start_ticks })
    }
}

/// An identifier of this start of the machine.
fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// The namespace of the process numbers in this process's `/proc`.
fn namespace() -> Option<String> {
    Some(std::fs::read_link("/proc/self/ns/pid").ok()?.to_str()?.to_owned())
}

/// When a process was started, in the kernel's ticks since the machine was. Nothing if it has ended.
fn start_ticks(pid: u32) -> Option<u64> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // Behind the name, which may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let has_ended = matches!(*fields.first()?, "Z" | "X");
    if has_ended { None } else { fields.get(19)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_has_not_ended_and_an_earlier_one_of_its_number_has() {
        let us = User::of(std::process::id()).unwrap();
        assert!(!us.has_ended());
        assert_eq!(us.to_string().parse(), Ok(us.clone()));
        let earlier = User { start_ticks: us.start_ticks - 1, ..us.clone() };
        assert!(earlier.has_ended());
        assert!(!User { namespace: "pid:[1]".to_owned(), ..earlier.clone() }.has_ended());
        assert!(User { boot: "another".to_owned(), namespace: "pid:[1]".to_owned(), ..us }.has_ended());
    }
}
