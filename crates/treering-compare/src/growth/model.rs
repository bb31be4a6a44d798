//! A cost as a sum of forms, fitted to what was measured.
//!
//! One form and a constant are fitted to each cost, as Extra-P does (A. Calotoiu, T. Hoefler, M. Poke and F. Wolf, "Using
//! automated performance modeling to find scalability bugs in complex codes", 2013): of all forms the one is taken that
//! tells each measurement best when it is fitted to the others. The cost of many parts is the sum of their models, so that
//! a part that grows fast is seen before it is the largest.

use std::ops::AddAssign;

use super::form::Form;

/// A cost as a sum of forms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Model {
    /// By form, as in [`Form::ALL`]; none is negative.
    coefficients: [f64; Form::ALL.len()],
}

/// A term counts if it is this part of the whole.
const LEAST_PART: f64 = 0.1;

impl Model {
    /// The cost at a size.
    pub fn at(&self, size: f64) -> f64 {
        self.terms().map(|(form, coefficient)| coefficient * form.at(size)).sum()
    }

    /// The fastest form that makes a tenth of the cost or more at a size.
    pub fn leading(&self, size: f64) -> Form {
        let least = self.at(size) * LEAST_PART;
        let mut leading = self.terms().filter(|(form, coefficient)| coefficient * form.at(size) >= least);
        leading.next_back().map_or(Form::CONSTANT, |(form, _)| form)
    }

    /// The forms with their coefficients, from the slowest.
    pub fn terms(&self) -> impl DoubleEndedIterator<Item = (Form, f64)> + '_ {
        Form::ALL.into_iter().zip(self.coefficients).filter(|&(_, coefficient)| coefficient > 0.0)
    }

    fn of(constant: f64, form: usize, coefficient: f64) -> Self {
        let mut coefficients = [0.0; Form::ALL.len()];
        coefficients[0] = constant;
        coefficients[form] += coefficient;
        Self { coefficients }
    }
}

impl AddAssign<&Self> for Model {
    fn add_assign(&mut self, other: &Self) {
        for (own, others) in self.coefficients.iter_mut().zip(other.coefficients) {
            *own += others;
        }
    }
}

/// The sizes of the runs, and the values of all forms there.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub(crate) sizes: Vec<f64>,
    /// By form, by size.
    values: Vec<Vec<f64>>,
}

/// With fewer measurements that are not 0, nothing is known of the form.
const LEAST_POINTS: usize = 3;

impl Sizes {
    pub(crate) fn new(sizes: Vec<f64>) -> Self {
        let values = Form::ALL.iter().map(|form| sizes.iter().map(|&size| form.at(size)).collect());
        Self { values: values.collect(), sizes }
    }

    /// The power of n that costs grow with from the last size but one to the largest.
    fn slope(&self, costs: &[f64]) -> f64 {
        let last = costs.len() - 1;
        (costs[last] / costs[last - 1]).ln() / (self.sizes[last] / self.sizes[last - 1]).ln()
    }

    /// Without the largest.
    pub(crate) fn without_largest(&self) -> Self {
        Self::new(self.sizes[..self.sizes.len() - 1].to_vec())
    }

    /// The model of costs by size. `errors` are their standard errors; where all are exact, they weigh the same.
    ///
    /// A cost that begins at larger sizes only is fitted from there on. If that leaves fewer than three sizes, the cost is taken
    /// to grow with n: any form would fit, and the fastest would foretell most.
    pub(crate) fn fit(&self, costs: &[f64], errors: Option<&[f64]>) -> Model {
        let first = costs.iter().position(|&cost| cost > 0.0).unwrap_or(costs.len());
        let measured = costs.len() - first;
        if measured == 0 {
            return Model::default();
        }
        if measured < LEAST_POINTS {
            let last = costs.len() - 1;
            return Model::of(0.0, 3, costs[last] / self.sizes[last]);
        }
        let weights: Vec<f64> = match errors {
            None => vec![1.0; measured],
            Some(errors) => errors[first..].iter().map(|error| 1.0 / error.max(1e-9).powi(2)).collect(),
        };
        let points = |form: usize| Points {
            forms: &self.values[form][first..],
            costs: &costs[first..],
            weights: &weights,
        };
        // Of forms that tell equally well, the slowest.
        const BETTER: f64 = 1e-6;
        let mut best = (f64::INFINITY, 0);
        for form in 0..Form::ALL.len() {
            let error = points(form).error_left_out();
            if error < best.0 - BETTER {
                best = (error, form);
            }
        }
        // Growth that does not explain most of what varies is noise, which any form fits and the fastest foretells most of.
        const EXPLAINS: f64 = 4.0;
        let form = if best.0 * EXPLAINS <= points(0).error_left_out() {
            best.1
        } else if rises(&costs[first..], errors.map(|errors| &errors[first..])) {
            // Not noise, but no form fits: between two of them, or faster than all.
            nearest(self.slope(costs))
        } else {
            0
        };
        let (constant, coefficient) = points(form).fit(None);
        Model::of(constant, form, coefficient)
    }
}

/// Whether costs rise with each size by more than their errors, to twice the first one or more: chance does not do that.
fn rises(costs: &[f64], errors: Option<&[f64]>) -> bool {
    const Z95: f64 = 1.959_963_984_540_054;
    let error = |at: usize| errors.map_or(0.0, |errors| errors[at]);
    let beyond = |at: usize| Z95 * error(at).hypot(error(at + 1));
    let grows = costs.windows(2).enumerate().all(|(at, pair)| pair[1] - pair[0] > beyond(at));
    grows && costs.first().zip(costs.last()).is_some_and(|(first, last)| *last >= 2.0 * first)
}

/// The power of n, among the forms, that is nearest to a slope.
fn nearest(slope: f64) -> usize {
    let away = |form: usize| (f64::from(Form::ALL[form].half_powers()) / 2.0 - slope).abs();
    let powers = (0..Form::ALL.len()).filter(|&form| Form::ALL[form].is_power());
    powers.min_by(|&a, &b| away(a).total_cmp(&away(b))).unwrap_or(0)
}

/// Measurements, and the values of one form at their sizes.
struct Points<'a> {
    forms: &'a [f64],
    costs: &'a [f64],
    weights: &'a [f64],
}

impl Points<'_> {
    /// The constant and the coefficient of the least squares, neither of them negative.
    fn fit(&self, left_out: Option<usize>) -> (f64, f64) {
        let scale = self.forms.iter().fold(f64::MIN_POSITIVE, |most, &form| most.max(form));
        let points = || {
            let points = self.forms.iter().zip(self.costs).zip(self.weights).enumerate();
            points
                .filter(move |&(at, _)| Some(at) != left_out)
                .map(move |(_, ((form, cost), weight))| (form / scale, *cost, *weight))
        };
        let sum = |of: &dyn Fn((f64, f64, f64)) -> f64| points().map(of).sum::<f64>();
        let weight = sum(&|(_, _, weight)| weight);
        let form = sum(&|(form, _, weight)| weight * form) / weight;
        let cost = sum(&|(_, cost, weight)| weight * cost) / weight;
        let spread = sum(&|(other, _, weight)| weight * (other - form).powi(2));
        if spread <= 1e-12 * weight {
            return (cost, 0.0);
        }
        let slope = sum(&|(other, of, weight)| weight * (other - form) * (of - cost)) / spread;
        let constant = cost - slope * form;
        if slope >= 0.0 && constant >= 0.0 {
            return (constant, slope / scale);
        }
        // The least squares of those with one of both 0.
        let proportional = sum(&|(form, cost, weight)| weight * form * cost)
            / sum(&|(form, _, weight)| weight * form * form);
        let error = |constant: f64, slope: f64| {
            sum(&|(form, cost, weight)| weight * (constant + slope * form - cost).powi(2))
        };
        match error(0.0, proportional) < error(cost, 0.0) {
            true => (0.0, proportional / scale),
            false => (cost, 0.0),
        }
    }

    /// The error of leaving one out: each measurement is foretold by a fit to the others. The sum of the relative
    /// errors, each at most 2.
    fn error_left_out(&self) -> f64 {
        let errors = (0..self.costs.len()).map(|at| {
            let (constant, coefficient) = self.fit(Some(at));
            let told = constant + coefficient * self.forms[at];
            let sum = told + self.costs[at];
            if sum > 0.0 { 2.0 * (told - self.costs[at]).abs() / sum } else { 0.0 }
        });
        errors.sum()
    }
}
