//! In which order versions run.

/// One run of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The round, from 0.
    pub round: usize,
    /// The version that runs, from 0.
    pub version: usize,
}

/// Every version once in each round, in an order that is drawn for each round.
///
/// A machine drifts: what runs in the same seconds has the same neighbours. And whoever is always first finds other caches
/// than whoever is always second.
pub fn turns(versions: usize, rounds: usize, seed: u64) -> Vec<Turn> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut turns = Vec::with_capacity(versions.saturating_mul(rounds));
    for round in 0..rounds {
        let first = turns.len();
        turns.extend((0..versions).map(|version| Turn { round, version }));
        random.shuffle(&mut turns[first..]);
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_runs_once_in_a_round_and_often_in_each_place() {
        let turns = turns(3, 300, 7);
        let mut places = [[0; 3]; 3];
        for (round, turns) in turns.chunks(3).enumerate() {
            for (place, turn) in turns.iter().enumerate() {
                assert_eq!(turn.round, round);
                places[turn.version][place] += 1;
            }
        }
        assert!(places.iter().all(|of| of.iter().sum::<i32>() == 300), "{places:?}");
        assert!(places.iter().flatten().all(|&times| (60..140).contains(&times)), "{places:?}");
    }
}
