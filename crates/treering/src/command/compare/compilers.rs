//! Programs that other compilers made. Nearly all of their functions have other code, so that no change of one is a cause.

use treering_compare::{Difference, Sides};
use treering_report::{grouped, plural};

/// The compilers of the first module that two made, shortened to names and versions.
pub(super) fn other(difference: &Difference) -> Option<Sides<String>> {
    let (_, compilers) = difference.code.as_ref()?.compilers.first()?;
    Some(named(compilers))
}

/// `GCC 12.2.0` and `clang 14.0.6`: those that the other side has not. A program of clang has GCC's code around `main`.
fn named(compilers: &Sides<String>) -> Sides<String> {
    let split = compilers.as_ref().map(|text| text.split(", ").collect::<Vec<_>>());
    let own = |of: &[&str], other: &[&str]| {
        let alone: Vec<&str> = of.iter().copied().filter(|name| !other.contains(name)).collect();
        let shown = if alone.is_empty() { of.to_vec() } else { alone };
        shown.iter().map(|name| short(name)).collect::<Vec<_>>().join(", ")
    };
    Sides { base: own(&split.base, &split.head), head: own(&split.head, &split.base) }
}

/// `GCC: (Debian 12.2.0-14) 12.2.0` is `GCC 12.2.0`, `Debian clang version 14.0.6` is `clang 14.0.6`.
fn short(compiler: &str) -> String {
    if let Some(version) = compiler.strip_prefix("GCC: ").and_then(|rest| rest.rsplit(' ').next()) {
        return format!("GCC {version}");
    }
    let Some((name, version)) = compiler.split_once(" version ") else { return compiler.to_owned() };
    let (name, version) = (name.rsplit(' ').next(), version.split(' ').next());
    format!("{} {}", name.unwrap_or_default(), version.unwrap_or_default())
}

/// Why no row is shown, and how to get one.
pub(super) fn explanation(difference: &Difference) -> String {
    let changed = difference.functions.iter().filter(|row| row.code_changed == Some(true)).count();
    let changes = || difference.functions.iter().map(|row| row.self_cost.change());
    let sum = |sum: i128| grouped(sum.unsigned_abs().min(u128::from(u64::MAX)) as u64);
    let (more, less) = (changes().filter(|change| *change > 0), changes().filter(|change| *change < 0));
    format!(
        "{} have other code: +{} and −{}, so no row is a cause.\n\
         Build both with one compiler, or --force for the rows.",
        plural(changed as u64, "function"),
        sum(more.sum()),
        sum(less.sum())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_named_by_what_the_other_side_has_not() {
        let gcc = "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0";
        let of = |base: &str, head: &str| {
            let Sides { base, head } = named(&Sides { base: base.to_owned(), head: head.to_owned() });
            format!("{base} → {head}")
        };
        let clang = format!("Debian clang version 14.0.6, {gcc}");
        assert_eq!(of(gcc, &clang), "GCC 12.2.0 → clang 14.0.6");
        assert_eq!(of(gcc, "GCC: (GNU) 13.1.1 20230714"), "GCC 12.2.0 → GCC 20230714");
        let rustc = format!("{gcc}, rustc version 1.95.0 (59807616e 2026-04-14)");
        assert_eq!(of(&rustc, &rustc.replace("1.95.0", "1.96.0")), "rustc 1.95.0 → rustc 1.96.0");
    }
}
