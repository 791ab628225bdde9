//! A sequence that has one element most of the time, which then stands beside its owner.
//!
//! Among thousands of listeners every piece of memory that a notice touches is out of the
//! processor's caches; this saves two of them.

use std::collections::VecDeque;

/// A sequence, front to back.
#[derive(Debug)]
pub(super) struct Few<T> {
    /// Invariant: if nothing is here, nothing is behind it.
    front: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Few<T> {
    pub(super) fn push_front(&mut self, element: T) {
        if let Some(second) = self.front.replace(element) {
            self.rest.push_front(second);
        }
    }

    pub(super) fn push_back(&mut self, element: T) {
        if self.front.is_none() {
            self.front = Some(element);
        } else {
            self.rest.push_back(element);
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        let front = self.front.take();
        self.front = self.rest.pop_front();
        front
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.front.as_ref()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.front.as_mut()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.front.iter_mut().chain(&mut self.rest)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.rest.retain(&keep);
        if self.front.as_ref().is_some_and(|front| !keep(front)) {
            self.pop_front();
        }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.front.is_some()) + self.rest.len()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { front: None, rest: VecDeque::new() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_sequence(steps in prop::collection::vec((0..4, 0..8), 0..40)) {
            let (mut few, mut plain) = (Few::default(), VecDeque::new());
            for (step, number) in steps {
                match step {
                    0 => { few.push_front(number); plain.push_front(number); }
                    1 => { few.push_back(number); plain.push_back(number); }
                    2 => prop_assert_eq!(few.pop_front(), plain.pop_front()),
                    _ => {
                        few.retain(|kept| *kept != number);
                        plain.retain(|kept| *kept != number);
                    }
                }
                prop_assert_eq!(few.len(), plain.len());
                prop_assert_eq!(few.front(), plain.front());
                prop_assert!(few.iter_mut().eq(plain.iter_mut()));
            }
        }
    }
}
