//! The forms that costs grow in.

/// A form of growth: n to a power, times the logarithm of n to a power. A slower one comes before a faster one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form {
    /// Twice the power of n.
    half_powers: i8,
    /// The power of log n.
    logs: i8,
}

impl Form {
    /// No growth.
    pub const CONSTANT: Self = Self { half_powers: 0, logs: 0 };
    /// Proportional to n.
    pub const LINEAR: Self = Self { half_powers: 2, logs: 0 };

    /// The forms that are fitted, from the slowest: 1, log n, √n, n, n log n, n^1.5, n², n² log n, n³.
    pub const ALL: [Self; 9] = [
        Self::CONSTANT,
        Self { half_powers: 0, logs: 1 },
        Self { half_powers: 1, logs: 0 },
        Self::LINEAR,
        Self { half_powers: 2, logs: 1 },
        Self { half_powers: 3, logs: 0 },
        Self { half_powers: 4, logs: 0 },
        Self { half_powers: 4, logs: 1 },
        Self { half_powers: 6, logs: 0 },
    ];

    /// The fastest one that is fitted.
    pub const FASTEST: Self = Self::ALL[Self::ALL.len() - 1];

    /// Twice its power of n.
    pub(super) const fn half_powers(self) -> i8 {
        self.half_powers
    }

    /// Whether it is a power of n alone.
    pub(super) const fn is_power(self) -> bool {
        self.logs == 0
    }

    /// Its value for a size of 1 or more.
    pub fn at(self, size: f64) -> f64 {
        size.powf(f64::from(self.half_powers) / 2.0) * size.log2().powi(i32::from(self.logs))
    }

    /// Its quotient by another: n² per n is n.
    #[must_use]
    pub fn per(self, other: Self) -> Self {
        Self { half_powers: self.half_powers - other.half_powers, logs: self.logs - other.logs }
    }

    /// As text, with the name of the size: `n²`, `n log n`, `√n`, `n / log n`.
    pub fn text(self, name: &str) -> String {
        let above = factors(self.half_powers.max(0), self.logs.max(0), name);
        let below = factors((-self.half_powers).max(0), (-self.logs).max(0), name);
        match (above.is_empty(), below.is_empty()) {
            (true, true) => "1".to_owned(),
            (false, true) => above,
            (true, false) => format!("1 / {below}"),
            (false, false) => format!("{above} / {below}"),
        }
    }
}

fn factors(half_powers: i8, logs: i8, name: &str) -> String {
    let power = match half_powers {
        0 => String::new(),
        1 => format!("√{name}"),
        2 => name.to_owned(),
        4 => format!("{name}²"),
        6 => format!("{name}³"),
        other if other % 2 == 0 => format!("{name}^{}", other / 2),
        other => format!("{name}^{}.5", other / 2),
    };
    let logarithm = match logs {
        0 => String::new(),
        1 => format!("log {name}"),
        logs => format!("log^{logs} {name}"),
    };
    [power, logarithm].into_iter().filter(|factor| !factor.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_ordered_by_growth_and_named_as_usual() {
        assert!(Form::ALL.is_sorted());
        let names = Form::ALL.map(|form| form.text("n"));
        assert_eq!(names, ["1", "log n", "√n", "n", "n log n", "n^1.5", "n²", "n² log n", "n³"]);
        // Each grows faster than the one before it, in the end.
        for pair in Form::ALL.windows(2) {
            let ratio = |size: f64| pair[1].at(size) / pair[0].at(size);
            assert!(ratio(1e9) > ratio(1e6), "{pair:?}");
        }
    }

    #[test]
    fn quotients_of_forms_are_named() {
        let [_, log, root, n, n_log, _, square, square_log, _] = Form::ALL;
        let quotients = [(square, n), (square_log, n_log), (n, log), (n_log, n), (n, square), (n, root)];
        let names = quotients.map(|(form, other)| form.per(other).text("n"));
        assert_eq!(names, ["n", "n", "n / log n", "log n", "1 / n", "√n"]);
    }
}
