// Iterator chains, closures, generics and trait objects, which the compiler inlines eagerly.
use std::collections::HashMap;

trait Weigh {
    fn weigh(&self) -> u64;
}

struct Stone(u64);
struct Feather;

impl Weigh for Stone {
    fn weigh(&self) -> u64 {
        self.0.rotate_left(3) ^ 5
    }
}

impl Weigh for Feather {
    fn weigh(&self) -> u64 {
        1
    }
}

#[inline(never)]
fn heaviest<T: Weigh + ?Sized>(things: &[Box<T>]) -> Option<u64> {
    things.iter().map(|thing| thing.weigh()).filter(|weight| weight % 2 == 1).max()
}

#[inline(never)]
fn count(text: &str) -> HashMap<char, usize> {
    let mut counts = HashMap::new();
    for letter in text.chars().filter(|letter| letter.is_alphanumeric()) {
        *counts.entry(letter).or_insert(0) += 1;
    }
    counts
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let things: Vec<Box<dyn Weigh>> = (0..100)
        .map(|n| if n % 3 == 0 { Box::new(Feather) as Box<dyn Weigh> } else { Box::new(Stone(n)) })
        .collect();
    let mut counts: Vec<_> = count(&arguments.join(" ")).into_iter().collect();
    counts.sort_by_key(|&(letter, count)| (std::cmp::Reverse(count), letter));
    println!("{:?} {:?}", heaviest(&things), counts.first());
}
