//! How fast messages are moved.

use std::time::{Duration, Instant};

/// A rate says nothing earlier.
const LEAST: Duration = Duration::from_secs(1);

/// How fast one thing after the other goes on.
#[derive(Default)]
pub(super) struct Rate {
    /// What is under way, since when, and how many had been moved by then.
    begun: Option<(String, Instant, u64)>,
}

impl Rate {
    /// Messages a second since it was first told of this; `None` as long as that says nothing.
    pub(super) fn of(&mut self, what: &str, moved: u64, now: Instant) -> Option<f64> {
        let (since, from) = match &self.begun {
            Some((same, since, from)) if same == what && *from <= moved => (*since, *from),
            Some(_) | None => {
                self.begun = Some((what.to_owned(), now, moved));
                (now, moved)
            }
        };
        let took = now.duration_since(since);
        (took >= LEAST && moved > from).then(|| (moved - from) as f64 / took.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_of_one_thing_at_a_time() {
        let (mut rate, now) = (Rate::default(), Instant::now());
        let at = |seconds: f64| now + Duration::from_secs_f64(seconds);
        assert_eq!(rate.of("a", 100, at(0.0)), None);
        assert_eq!(rate.of("a", 900, at(0.5)), None, "too early");
        assert_eq!(rate.of("a", 4_100, at(2.0)), Some(2_000.0));
        assert_eq!(rate.of("b", 4_200, at(3.0)), None, "another");
        assert_eq!(rate.of("b", 4_200, at(5.0)), None, "nothing is moved");
        assert_eq!(rate.of("b", 4_700, at(8.0)), Some(100.0));
        assert_eq!(rate.of("b", 10, at(9.0)), None, "it began anew");
    }
}
