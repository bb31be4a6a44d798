//! On what, and how busy it was.

/// Prints the processor, the system, and the load.
#[expect(clippy::print_stdout, reason = "it belongs to the tables")]
pub(crate) fn print() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches([' ', '\t', ':']);
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    let system = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load: Vec<&str> = load.split(' ').take(3).collect();
    println!("{count} x {model}, Linux {}, load {}", system.trim(), load.join(" "));
}
