//! Compares names so that the numbers in them are in numeric order: `q.2` before `q.10`.

use std::cmp::Ordering;

/// Compares two names. Sequences of ASCII digits compare as numbers, and all other bytes compare as bytes. Names that
/// differ only in leading zeros compare as bytes.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    loop {
        let (digits, other_digits) = (digits(left), digits(right));
        if digits > 0 && other_digits > 0 {
            let numbers = (without_zeros(&left[..digits]), without_zeros(&right[..other_digits]));
            let by_value = numbers.0.len().cmp(&numbers.1.len()).then_with(|| numbers.0.cmp(numbers.1));
            if by_value != Ordering::Equal {
                return by_value;
            }
            (left, right) = (&left[digits..], &right[other_digits..]);
            continue;
        }
        match (left, right) {
            ([x, rest @ ..], [y, other_rest @ ..]) if x == y => (left, right) = (rest, other_rest),
            (_, _) => return left.cmp(right).then_with(|| a.cmp(b)),
        }
    }
}

/// Returns the number of ASCII digits at the start.
fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_numeric_order() {
        let expected = [
            "",
            "-1",
            "2",
            "10",
            "a",
            "a-1",
            "a.2.b.3",
            "a.2.b.20",
            "a.10.b.1",
            "a0",
            "a01",
            "a1",
            "a01b",
            "a1c",
            "a2",
            "a18446744073709551617",
            "a18446744073709551618",
            "ab",
            "b",
            "celery_delayed_2",
            "celery_delayed_10",
            "celery_delayed_delivery",
            "é1",
        ];
        let mut names = expected;
        names.reverse();
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, expected);
    }

    #[test]
    fn names_without_numbers_are_in_byte_order() {
        for (a, b) in [("a", "B"), ("orders", "orders.work"), ("a.b", "a-b"), ("a_b", "a.b"), ("x", "x")] {
            assert_eq!(compare(a, b), a.cmp(b), "{a} {b}");
        }
    }
}
