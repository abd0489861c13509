//! Formats the text in graphs: names, labels and tooltips.

use crate::graph::{Arrow, Graph, Label, Mark, Node, Retries, Tier, VhostGraph};
use crate::model::count::number;
use crate::render::style::clean;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The number of labels that are drawn on an arrow if some of its labels are omitted.
const MAX_LABELS: usize = 4;

/// Returns the width of a string in cells of a monospaced font.
pub(super) fn cells(text: &str) -> usize {
    text.width()
}

/// Shortens a string to at most `max_cells` cells by omitting its middle, because names often differ only at the end.
pub(super) fn shorten(text: &str, max_cells: usize) -> String {
    let text = clean(text);
    if cells(&text) <= max_cells {
        return text;
    }
    let room = max_cells.saturating_sub(1);
    let (front, back) = (room - room * 2 / 5, room * 2 / 5);
    let take = |max_cells: usize, chars: &mut dyn Iterator<Item = char>| -> String {
        let mut room = max_cells;
        chars
            .take_while(|c| {
                let width = c.width().unwrap_or(0);
                let fits = width <= room;
                room = room.saturating_sub(width);
                fits
            })
            .collect()
    };
    let head = take(front, &mut text.chars());
    let tail: String = take(back, &mut text.chars().rev()).chars().rev().collect();
    // A combining character must not be the first character of a string.
    let tail = tail.trim_start_matches(|c: char| c.width() == Some(0));
    format!("{head}…{tail}")
}

/// Shortens a label to at most `max_cells` cells. If possible, truncates a list of headers between two values, because
/// a partial value is useless.
fn shorten_label(text: &str, max_cells: usize) -> String {
    let text = clean(text);
    if cells(&text) <= max_cells || !text.contains(": ") {
        return shorten(&text, max_cells);
    }
    let (mut depth, mut width, mut end) = (0_usize, 0, None);
    for (at, c) in text.char_indices() {
        width += c.width().unwrap_or(0);
        // `, …` follows the last complete value.
        if width + 2 > max_cells {
            break;
        }
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 && text[at..].starts_with(", ") => end = Some(at),
            _ => {}
        }
    }
    match end {
        Some(end) => format!("{}, …", &text[..end]),
        None => {
            let mut taken = String::new();
            for c in text.chars() {
                if cells(&taken) + c.width().unwrap_or(0) >= max_cells {
                    break;
                }
                taken.push(c);
            }
            format!("{taken}…")
        }
    }
}

/// Prefixes a string with the symbol of a change.
pub(super) fn with_symbol(mark: Option<Mark>, text: &str) -> String {
    mark.map_or_else(|| text.to_owned(), |mark| format!("{} {text}", mark.sign()))
}

/// Returns the title of a box: the symbol of its change, and its name. For a stack, the title also contains the number
/// of objects.
pub(super) fn name(node: &Node, max_cells: usize) -> String {
    let shown = match node.stacks.len() {
        0 => shorten(&node.name, max_cells),
        many => {
            let many = format!("{} like ", number(u64::try_from(many).unwrap_or(u64::MAX)));
            format!("{many}{}", shorten(&node.name, max_cells.saturating_sub(cells(&many))))
        }
    };
    with_symbol(node.mark, &shown)
}

/// Returns the line below the name: the kind and the notes.
pub(super) fn below(node: &Node) -> String {
    let parts: Vec<&str> = [node.words.as_str()].into_iter().chain(node.notes.iter().map(String::as_str)).collect();
    clean(&parts.join(" · "))
}

/// Returns the tooltip of a box, as lines.
pub(super) fn tooltip(node: &Node) -> Vec<String> {
    let mut lines = vec![clean(&node.name), below(node)];
    lines.extend(node.is_copy.then(|| "also drawn elsewhere".to_owned()));
    lines.extend(node.mark.map(|mark| mark.as_str().to_owned()));
    if let Some(retries) = &node.retries {
        lines.extend(retries.tiers.iter().map(|tier| with_symbol(tier.mark, &format!("tier {}", clean(&tier.name)))));
    }
    if !node.stacks.is_empty() {
        lines.push(format!("{} similar objects:", node.stacks.len()));
        lines.extend(node.stacks.iter().map(|name| clean(name)));
    }
    lines.extend(node.at.as_deref().map(clean));
    lines
}

/// Describes the condition for a message to enter a tier.
pub(super) fn tier_condition(retries: &Retries, tier: &Tier) -> String {
    let ending = match (tier.number % 100, tier.number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        (_, _) => "th",
    };
    match tier.number {
        1 => retries.out.clone(),
        number => format!("{number}{ending} time"),
    }
}

/// Returns the mark of the arrow to a tier: the mark of the tier, or the mark of the retries if no tier has a mark.
pub(super) fn mark_of_tier_arrow(retries: &Retries, tier: &Tier) -> Option<Mark> {
    if retries.tiers.iter().all(|tier| tier.mark.is_none()) { retries.mark } else { tier.mark }
}

/// Returns the labels to draw on an arrow. If labels are omitted, the last label contains the number of omitted labels.
pub(super) fn labels(labels: &[Label], max_cells: usize) -> Vec<String> {
    let shown = |label: &Label| with_symbol(label.mark, &shorten_label(&label.text, max_cells));
    // A line with the number of omitted labels occupies as much space as one more label.
    let taken = if labels.len() <= MAX_LABELS + 1 { labels.len() } else { MAX_LABELS };
    let rest = labels.len() - taken;
    let more = (rest > 0).then(|| format!("… {rest} more"));
    labels.iter().take(taken).map(shown).chain(more).collect()
}

/// Returns the tooltip of an arrow, as lines.
pub(super) fn arrow_tooltip(arrow: &Arrow, vhost: &VhostGraph) -> Vec<String> {
    let name = |index: usize| vhost.nodes.get(index).map_or_else(String::new, |node| clean(&node.name));
    let mut lines = vec![format!("{} → {}", name(arrow.from), name(arrow.to)), arrow.kind.as_str().to_owned()];
    lines.extend(arrow.mark.map(|mark| mark.as_str().to_owned()));
    lines.extend(arrow.labels.iter().map(|label| with_symbol(label.mark, &clean(&label.text))));
    lines
}

/// Returns the heading of a vhost, such as `vhost shop: 3 exchanges, 12 queues`. Does not count copies, deleted
/// objects, or objects that the spec does not define.
pub(super) fn heading(vhost: &VhostGraph) -> String {
    let (mut exchanges, mut queues) = (0, 0);
    let is_counted = |node: &&Node| !node.is_copy && !node.kind.is_foreign() && node.mark != Some(Mark::Deleted);
    for node in vhost.nodes.iter().filter(is_counted) {
        let count = node.stacks.len().max(1);
        *(if node.kind.is_exchange() { &mut exchanges } else { &mut queues }) += count;
    }
    let counted = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        many => format!("{} {word}s", number(u64::try_from(many).unwrap_or(u64::MAX))),
    };
    let name = shorten(vhost.vhost.as_str(), 60);
    with_symbol(vhost.mark, &format!("vhost {name}: {}, {}", counted(exchanges, "exchange"), counted(queues, "queue")))
}

/// Describes the graph in one line, for screen readers.
pub(super) fn description(graph: &Graph) -> String {
    let parts: Vec<String> = graph.vhosts.iter().map(heading).collect();
    let what = if graph.is_plan { "Planned changes to the RabbitMQ topology of" } else { "The RabbitMQ topology of" };
    format!("{what} {}", parts.join("; "))
}

/// Formats a length with at most one decimal place.
pub(super) fn decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Escapes the text of an XML element. The text must not contain control characters.
pub(super) fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_in_the_middle() {
        assert_eq!(shorten("orders.work", 11), "orders.work");
        assert_eq!(shorten("orders.work.created", 11), "orders…ated");
        assert_eq!(shorten("日本語日本語", 7), "日本…語");
        for max in 1..20 {
            assert!(cells(&shorten("日本語.a\u{301}b.日本語.xyz", max)) <= max, "{max}");
        }
    }

    #[test]
    fn headers_are_shortened_between_values() {
        let text = "b: true, f: 1.5, l: [1, 2], x: yes";
        assert_eq!(shorten_label(text, 34), text);
        assert_eq!(shorten_label(text, 33), "b: true, f: 1.5, l: [1, 2], …");
        assert_eq!(shorten_label(text, 26), "b: true, f: 1.5, …");
        assert_eq!(shorten_label("l: [one, two, three]", 12), "l: [one, tw…");
        assert_eq!(shorten_label("orders.work.created", 11), "orders…ated");
        for max in 1..40 {
            assert!(cells(&shorten_label("日本: 語, f: [日本, 語], x: yes", max)) <= max.max(2), "{max}");
        }
    }

    #[test]
    fn omitted_labels_are_counted() {
        let of = |count: usize| {
            let all: Vec<Label> = (0..count).map(|it| Label { text: format!("k{it}"), mark: None }).collect();
            labels(&all, 10).join(" ")
        };
        assert_eq!(of(5), "k0 k1 k2 k3 k4");
        assert_eq!(of(7), "k0 k1 k2 k3 … 3 more");
    }
}
