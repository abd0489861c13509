//! Defines the glossary: the terms used in plans, reports and documentation, except lint rules, hazards, spec keys and
//! error codes. `topo explain WORD` prints an entry, and `docs/glossary.md` contains all entries.

mod terms_a_to_l;
mod terms_m_to_z;

use crate::lint::RULES;
use crate::plan::HazardKind;
use std::fmt::Write as _;

/// A term that the output or the documentation uses.
#[derive(Debug)]
pub struct Term {
    /// The word as topo prints it, with hyphens instead of spaces.
    pub word: &'static str,
    /// Synonyms, and other words that this entry explains.
    also: &'static [&'static str],
    /// The meaning, as lines of Markdown.
    text: &'static str,
    /// Related words that `topo explain` also explains.
    see: &'static [&'static str],
}

const fn term(
    word: &'static str,
    also: &'static [&'static str],
    text: &'static str,
    see: &'static [&'static str],
) -> Term {
    Term { word, also, text, see }
}

/// Returns all terms, sorted by word.
pub fn terms() -> impl Iterator<Item = &'static Term> {
    terms_a_to_l::TERMS.iter().chain(terms_m_to_z::TERMS)
}

/// Returns the entry for a word, or `None` if the glossary does not explain the word. Ignores case, and treats spaces
/// as hyphens.
pub fn term_of(word: &str) -> Option<&'static Term> {
    let word = word.to_lowercase().replace(' ', "-");
    terms().find(|term| term.words().any(|known| known.to_lowercase() == word))
}

impl Term {
    /// Returns all words that this entry explains.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.word).chain(self.also.iter().copied())
    }

    /// Returns the entry as a Markdown page with a heading.
    pub fn page(&self) -> String {
        format!("# {}\n\n{}", self.word, self.body())
    }

    /// Returns the Markdown page without its heading.
    pub fn body(&self) -> String {
        let see: Vec<String> = self.see.iter().map(|word| format!("`topo explain {word}`")).collect();
        format!("{}\n\nSee also: {}.\n", self.paragraphs(), see.join(", "))
    }

    /// Returns the meaning and the other words of the entry.
    fn paragraphs(&self) -> String {
        let text = self.text.replace('\n', " ");
        let also: Vec<String> = self.also.iter().map(|word| format!("`{word}`")).collect();
        if also.is_empty() { text } else { format!("{text}\n\nAlso: {}.", also.join(", ")) }
    }
}

/// Returns the glossary as one Markdown page.
pub fn reference() -> String {
    let mut page = "\
# Glossary

This page explains the terms that are used in plans, in reports and in this documentation. `topo explain WORD` prints
the same entries, and also explains each lint rule, hazard, spec key and error code. This page is generated.
"
    .to_owned();
    for term in terms() {
        let see: Vec<String> = term.see.iter().map(|word| link(word)).collect();
        let _ = write!(page, "\n## {}\n\n{}\n\nSee also: {}.\n", term.word, term.paragraphs(), see.join(", "));
    }
    page
}

/// Returns a Markdown link to the entry for a word. If the glossary has no such entry, returns a link to the
/// documentation of the lint rule, hazard or spec key with this name.
fn link(word: &str) -> String {
    if terms().any(|term| term.word == word) {
        return format!("[{word}](#{})", word.to_lowercase());
    }
    if let Some(rule) = RULES.iter().find(|rule| rule.name == word) {
        return format!("[{word}](../src/lint/rules/{}.md)", rule.name.replace('-', "_"));
    }
    let page = if word.parse::<HazardKind>().is_ok() { "reference.md#hazards" } else { "spec.md#keys" };
    format!("[{word}]({page})")
}

#[cfg(test)]
mod tests;
