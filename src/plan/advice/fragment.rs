//! Builds the part of a spec that a resolution tells the user to write.

use crate::model::yaml::{Tree, scalar};
use std::fmt::Write;

/// A document that is built key by key, in block style.
pub(super) struct Fragment {
    remarks: Vec<String>,
    tree: Tree,
}

impl Default for Fragment {
    fn default() -> Self {
        Self { remarks: Vec::new(), tree: Tree::table([]).block() }
    }
}

impl Fragment {
    /// Sets the value at a path of keys.
    pub(super) fn set(&mut self, path: &[&str], value: Tree) {
        self.tree.set(path, value);
    }

    /// Adds comments above the key at a path.
    pub(super) fn comment(&mut self, path: &[&str], comments: Vec<String>) {
        self.tree.comment(path, comments);
    }

    /// Adds a comment above the document.
    pub(super) fn remark(&mut self, text: &str) {
        self.remarks.push(scalar::comment(text));
    }

    /// Returns the text, or `None` if no key is set.
    pub(super) fn text(&self) -> Option<String> {
        if self.tree.is_empty() {
            return None;
        }
        let mut text = String::new();
        for remark in &self.remarks {
            let _ = writeln!(text, "# {remark}");
        }
        Some(text + &self.tree.document())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_above_the_keys() {
        let mut fragment = Fragment::default();
        assert_eq!(fragment.text(), None);
        fragment.set(&["queues", "a: b", "messageTtl"], Tree::plain("1m"));
        fragment.set(&["exchanges", "old", "external"], Tree::plain(true));
        fragment.comment(&["exchanges", "old"], vec!["second".to_owned()]);
        fragment.remark("first\nline");
        let expected = "# first\\nline\nqueues:\n  \"a: b\":\n    messageTtl: 1m\nexchanges:\n  # second\n  old:\n    \
                        external: true\n";
        assert_eq!(fragment.text().unwrap(), expected);
    }
}
