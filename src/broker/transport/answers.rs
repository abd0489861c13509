//! Tracks which messages in transit may have been answered. Each message has its own waker, which the AMQP library
//! calls.
//!
//! With a thousand messages in transit, polling all messages after each answer would take longer than moving them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The numbers of the messages whose waker has been called since the last [`Answers::take`].
#[derive(Default)]
pub(super) struct Answers(Mutex<Answered>);

#[derive(Default)]
struct Answered {
    numbers: Vec<u64>,
    /// The number of the awaited message, and the waker of the task that waits for it.
    waiting: Option<(u64, Waker)>,
}

/// The waker of one message.
struct AnswerWaker {
    number: u64,
    answers: Arc<Answers>,
}

impl Wake for AnswerWaker {
    fn wake(self: Arc<Self>) {
        self.answers.mark(self.number);
    }
}

impl Answers {
    /// Returns the waker of one message.
    pub(super) fn waker_of(self: &Arc<Self>, number: u64) -> Waker {
        Arc::new(AnswerWaker { number, answers: self.clone() }).into()
    }

    /// Marks a message as answered, as its waker does.
    pub(super) fn mark(&self, number: u64) {
        let mut answered = self.lock();
        answered.numbers.push(number);
        let waiting = answered.waiting.take_if(|(awaited, _)| *awaited == number);
        drop(answered);
        if let Some((_, waker)) = waiting {
            waker.wake();
        }
    }

    /// Returns the numbers of the answered messages in the order of the answers, and clears the list. A number can
    /// occur several times.
    pub(super) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.lock().numbers)
    }

    /// Registers a task to wake when message `number` is answered. Returns false if there are answers that have not
    /// been taken. In that case, the task must take these answers instead of waiting.
    pub(super) fn wake_on(&self, number: u64, waker: &Waker) -> bool {
        let mut answered = self.lock();
        answered.waiting = Some((number, waker.clone()));
        answered.numbers.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Answered> {
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
    fn only_the_awaited_answer_wakes_and_all_are_returned_in_order() {
        let answers = Arc::new(Answers::default());
        let count = Arc::new(Count::default());
        let woken = || count.0.load(Ordering::SeqCst);
        let wakers: Vec<Waker> = (0..4).map(|number| answers.waker_of(number)).collect();
        assert!(answers.wake_on(1, &count.clone().into()));
        wakers[3].wake_by_ref();
        wakers[0].wake_by_ref();
        assert_eq!(woken(), 0);
        wakers[1].wake_by_ref();
        wakers[1].wake_by_ref();
        assert_eq!(woken(), 1);
        assert!(!answers.wake_on(2, &count.clone().into()), "an answer was not taken");
        assert_eq!(answers.take(), [3, 0, 1, 1]);
        assert!(answers.take().is_empty() && answers.wake_on(2, &count.clone().into()));
        answers.mark(2);
        assert_eq!(woken(), 2);
    }
}
