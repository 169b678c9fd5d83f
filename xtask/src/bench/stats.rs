//! Medians, and ratios of two contestants taken round by round.

/// A middle value with the range around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// `None` for no values at all.
    pub(crate) fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let median = if sorted.len() % 2 == 1 { upper } else { (*sorted.get(middle - 1)? + upper) / 2.0 };
        Some(Summary { median, min, max })
    }
}

/// How one contestant's speed compares with another's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// Over the ratios of each round.
    pub(crate) rounds: Summary,
    /// The best round of one over the best round of the other: noise only ever slows a round down.
    pub(crate) best: f64,
}

impl Ratio {
    /// Takes the speeds of both in the order of the rounds; a round that one of them lacks does not count.
    pub(crate) fn of(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Ratio> {
        let pairs: Vec<(f64, f64)> = ours.iter().zip(theirs).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
        let ratios: Vec<f64> = pairs.iter().map(|(a, b)| a / b).collect();
        let fastest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let best = fastest(&mut pairs.iter().map(|pair| pair.0)) / fastest(&mut pairs.iter().map(|pair| pair.1));
        Some(Ratio { rounds: Summary::of(&ratios)?, best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]), Some(Summary { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn ratios_go_round_by_round() {
        let ours = [Some(10.0), Some(20.0), None, Some(30.0)];
        let theirs = [Some(10.0), Some(10.0), Some(1.0), Some(20.0)];
        let ratio = Ratio::of(&ours, &theirs);
        assert_eq!(ratio.map(|r| r.rounds), Some(Summary { median: 1.5, min: 1.0, max: 2.0 }));
        assert_eq!(ratio.map(|r| r.best), Some(1.5));
        assert_eq!(Ratio::of(&[None], &[Some(1.0)]), None);
    }
}
