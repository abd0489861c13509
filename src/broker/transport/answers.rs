//! Tracks which messages in transit may have been answered: each has its own waker, which the library wakes.
//!
//! To ask all of them each time that one is answered costs, with a thousand under way, more than to move them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// What has rung since the last look.
#[derive(Default)]
pub(super) struct Answers(Mutex<Rung>);

#[derive(Default)]
struct Rung {
    numbers: Vec<u64>,
    /// Whoever waits, and for which.
    waiting: Option<(u64, Waker)>,
}

/// One message's.
struct Bell {
    number: u64,
    answers: Arc<Answers>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.answers.ring(self.number);
    }
}

impl Answers {
    /// The bell of one message.
    pub(super) fn bell(self: &Arc<Self>, number: u64) -> Waker {
        Arc::new(Bell { number, answers: self.clone() }).into()
    }

    /// As if its bell had rung.
    pub(super) fn ring(&self, number: u64) {
        let mut rung = self.rung();
        rung.numbers.push(number);
        let waiting = rung.waiting.take_if(|(awaited, _)| *awaited == number);
        drop(rung);
        if let Some((_, waker)) = waiting {
            waker.wake();
        }
    }

    /// What has rung, in that order; not again what was taken before.
    pub(super) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.rung().numbers)
    }

    /// Wakes that one when the bell of this number rings; false if anything has rung that was not taken.
    pub(super) fn wake_at(&self, number: u64, waker: &Waker) -> bool {
        let mut rung = self.rung();
        rung.waiting = Some((number, waker.clone()));
        rung.numbers.is_empty()
    }

    fn rung(&self) -> MutexGuard<'_, Rung> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn only_the_awaited_one_wakes_and_all_are_seen_in_order() {
        let answers = Arc::new(Answers::default());
        let count = Arc::new(Count::default());
        let woken = || count.0.load(Ordering::SeqCst);
        let bells: Vec<Waker> = (0..4).map(|number| answers.bell(number)).collect();
        assert!(answers.wake_at(1, &count.clone().into()));
        bells[3].wake_by_ref();
        bells[0].wake_by_ref();
        assert_eq!(woken(), 0);
        bells[1].wake_by_ref();
        bells[1].wake_by_ref();
        assert_eq!(woken(), 1);
        assert!(!answers.wake_at(2, &count.clone().into()), "something has rung already");
        assert_eq!(answers.take(), [3, 0, 1, 1]);
        assert!(answers.take().is_empty() && answers.wake_at(2, &count.clone().into()));
        answers.ring(2);
        assert_eq!(woken(), 2);
    }
}
