//! A cost by size, and how it grows.

use super::form::Form;
use super::model::{Model, Sizes};

/// Sizes this many times as large are foretold.
pub const FORETOLD: f64 = 10.0;

/// A cost by size, and how it grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The cost at each size.
    pub costs: Vec<u64>,
    /// The cost as a sum of forms.
    pub model: Model,
    /// The form that leads at ten times the largest size.
    pub form: Form,
    /// Whether the form is the same, and the largest cost foretold within 2 %, without the largest size; and whether
    /// chance could not have made another form of it, where costs are estimates.
    pub is_settled: bool,
    /// The power of n that the cost grew with from the last size but one to the largest; nothing where one of both is 0.
    pub slope: Option<f64>,
    /// Between which bounds the true one lies with 95 % confidence; nothing where costs are exact or their errors are not
    /// known.
    pub slope_interval: Option<(f64, f64)>,
}

impl Curve {
    /// Whether it grows faster than all forms that are fitted, as exponentially: then too little is foretold.
    pub fn outgrows(&self) -> bool {
        /// n (n − 1) (n − 2) grows with this power between some tens, the fourth power of n with more.
        const BEYOND: f64 = 3.5;
        let least = self.slope_interval.map(|(low, _)| low).or(self.slope);
        self.form == Form::FASTEST && least.is_some_and(|slope| slope > BEYOND)
    }

    /// The form as text, with the name of the size: `n²`, or `> n³` if it is outgrown.
    pub fn growth(&self, name: &str) -> String {
        let faster = if self.outgrows() { "> " } else { "" };
        format!("{faster}{}", self.form.text(name))
    }
}

/// Models of all sizes, and of all but the largest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Models {
    pub(crate) all: Model,
    pub(crate) without_largest: Model,
}

impl Models {
    pub(crate) fn add(&mut self, other: &Self) {
        self.all += &other.all;
        self.without_largest += &other.without_largest;
    }
}

/// Costs that are estimates, by size, with their standard errors.
#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    pub(crate) costs: Vec<f64>,
    pub(crate) errors: Vec<f64>,
}

impl Estimates {
    /// The costs, drawn anew with their errors.
    fn drawn(&self, random: &mut fastrand::Rng) -> Vec<f64> {
        let both = self.costs.iter().zip(&self.errors);
        both.map(|(cost, error)| (cost + error * normal(random)).max(0.0)).collect()
    }
}

/// Fits models to costs.
#[derive(Clone, Debug)]
pub(crate) struct Fitter {
    pub(crate) sizes: Sizes,
    smaller: Sizes,
}

impl Fitter {
    pub(crate) fn new(sizes: Vec<f64>) -> Self {
        let sizes = Sizes::new(sizes);
        Self { smaller: sizes.without_largest(), sizes }
    }

    pub(crate) fn models(&self, costs: &[u64]) -> Models {
        let costs: Vec<f64> = costs.iter().map(|&cost| cost as f64).collect();
        let smaller = &costs[..costs.len() - 1];
        Models { all: self.sizes.fit(&costs, None), without_largest: self.smaller.fit(smaller, None) }
    }

    /// The size that is foretold.
    pub(crate) fn foretold(&self) -> f64 {
        self.largest() * FORETOLD
    }

    pub(crate) fn largest(&self) -> f64 {
        self.sizes.sizes.last().copied().unwrap_or(1.0)
    }

    /// The curve of exact costs whose parts have been fitted.
    pub(crate) fn curve(&self, costs: Vec<u64>, models: &Models) -> Curve {
        /// Of fewer sizes none can be left out: what is left fits any form.
        const ENOUGH: usize = 4;
        const WITHIN: f64 = 0.02;
        let last = costs.last().map_or(0.0, |&cost| cost as f64);
        let form = models.all.leading(self.foretold());
        let told = models.without_largest.at(self.largest());
        let is_settled = costs.len() >= ENOUGH
            && models.without_largest.leading(self.foretold()) == form
            && (told - last).abs() <= WITHIN * last;
        Curve { slope: self.slope(&costs), costs, model: models.all, form, is_settled, slope_interval: None }
    }

    /// The curve of costs that are estimates, from its parts; `errors` are those of the whole.
    ///
    /// How sure its form is comes from parts drawn anew, each with its error (B. Efron and R. Tibshirani, "An introduction
    /// to the bootstrap", 1993): it is if nineteen of twenty draws have the same. Nothing is drawn for what is too small
    /// to be `shown`, which is never called sure.
    pub(crate) fn estimated(
        &self,
        costs: Vec<u64>,
        errors: &[f64],
        parts: &[Estimates],
        shown: bool,
    ) -> Curve {
        const DRAWS: usize = 100;
        const NEEDED: usize = DRAWS * 19 / 20;
        let model = self.sum(parts, |part| part.costs.clone());
        let form = model.leading(self.foretold());
        let mut random = fastrand::Rng::with_seed(43);
        let is_settled = shown && {
            let equal = (0..DRAWS).filter(|_| {
                let drawn = self.sum(parts, |part| part.drawn(&mut random));
                drawn.leading(self.foretold()) == form
            });
            equal.count() >= NEEDED
        };
        let slope = self.slope(&costs);
        let slope_interval = slope.and_then(|slope| {
            const Z95: f64 = 1.959_963_984_540_054;
            let relative = |at: usize| errors[at] / costs[at] as f64;
            let last = costs.len() - 1;
            let half = Z95 * relative(last).hypot(relative(last - 1)) / self.last_step();
            half.is_finite().then_some((slope - half, slope + half))
        });
        Curve { costs, model, form, is_settled, slope, slope_interval }
    }

    fn sum(&self, parts: &[Estimates], mut costs: impl FnMut(&Estimates) -> Vec<f64>) -> Model {
        let mut sum = Model::default();
        for part in parts {
            sum += &self.sizes.fit(&costs(part), Some(&part.errors));
        }
        sum
    }

    /// The logarithm of how many times the last size is the one before.
    fn last_step(&self) -> f64 {
        let sizes = &self.sizes.sizes;
        (sizes[sizes.len() - 1] / sizes[sizes.len() - 2]).ln()
    }

    fn slope(&self, costs: &[u64]) -> Option<f64> {
        let [.., before, last] = *costs else { return None };
        (before > 0 && last > 0).then(|| (last as f64 / before as f64).ln() / self.last_step())
    }
}

/// A number of the standard normal distribution (G. Box and M. Muller, "A note on the generation of random normal
/// deviates", 1958).
pub(super) fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
