//! Renders a graph as Mermaid, which GitHub and GitLab draw in Markdown.

use super::palette::{self, PAINTS};
use super::words::{
    below, cells, description, heading, labels, mark_of_tier_arrow, name, shortened, tier_condition, with_symbol,
};
use crate::graph::{Arrow, ArrowKind, Graph, Kind, Mark, Node, VhostGraph};
use crate::render::style::clean;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The maximum number of cells of a name. Mermaid has no tooltips for longer names.
const LONGEST: usize = 60;
/// The maximum number of arrows that GitHub draws (`maxEdges`).
pub const MOST_ARROWS: usize = 500;
/// The maximum number of characters that GitHub accepts (`maxTextSize`).
pub const MOST_CHARACTERS: usize = 50_000;

/// Renders a graph as Mermaid. Also returns the number of arrows.
pub fn mermaid(graph: &Graph) -> (String, usize) {
    let mut writer = Writer { is_plan: graph.is_plan, ..Writer::default() };
    let _ = writeln!(writer.text, "flowchart LR");
    let _ = writeln!(writer.text, "  accTitle: {}", plain("RabbitMQ topology"));
    let _ = writeln!(writer.text, "  accDescr: {}", plain(&description(graph)));
    let is_titled = graph.vhosts.len() > 1;
    for vhost in &graph.vhosts {
        if is_titled {
            let id = writer.id();
            let _ = writeln!(writer.text, "  subgraph {id}[\"{}\"]", escaped(&heading(vhost)));
        }
        writer.vhost(vhost);
        if is_titled {
            writer.text.push_str("  end\n");
        }
    }
    writer.legend();
    writer.write_styles();
    (writer.text, writer.arrows)
}

#[derive(Default)]
struct Writer {
    text: String,
    is_plan: bool,
    ids: usize,
    arrows: usize,
    /// The numbers of arrows, by their style.
    styles: BTreeMap<String, Vec<usize>>,
    classes: BTreeMap<&'static str, Vec<String>>,
    kinds: BTreeSet<ArrowKind>,
    marks: BTreeSet<Mark>,
}

impl Writer {
    fn id(&mut self) -> String {
        self.ids += 1;
        format!("n{}", self.ids)
    }

    fn vhost(&mut self, vhost: &VhostGraph) {
        let ids: Vec<String> = vhost.nodes.iter().map(|node| self.node(node)).collect();
        for arrow in &vhost.arrows {
            let (Some(from), Some(to)) = (ids.get(arrow.from), ids.get(arrow.to)) else { continue };
            self.arrow(from, to, arrow);
        }
    }

    /// Writes a box and returns its ID. The tiers of a queue are boxes next to it, each linked to it in both
    /// directions.
    fn node(&mut self, node: &Node) -> String {
        let id = self.id();
        self.marks.extend(node.mark);
        let shown = name(node, LONGEST);
        if node.stacks.is_empty() && cells(&clean(&node.name)) > LONGEST {
            let _ = writeln!(self.text, "  %% {id}: {}", comment(&node.name));
        }
        let label = format!("{}<br/>{}", escaped(&shown), escaped(&below(node)));
        let (open, close) = match node.kind {
            Kind::Exchange | Kind::ForeignExchange => ("{{", "}}"),
            Kind::Queue | Kind::ForeignQueue => ("[", "]"),
            Kind::Stream => ("[(", ")]"),
            Kind::DeadLetterQueue => ("[[", "]]"),
            Kind::Tier => ("([", "])"),
        };
        let _ = writeln!(self.text, "  {id}{open}\"{label}\"{close}");
        let class = palette::of_node(node, self.is_plan).class;
        self.classes.entry(class).or_default().push(id.clone());
        if matches!(node.kind, Kind::ForeignExchange | Kind::ForeignQueue) || node.is_copy {
            self.classes.entry("dashed").or_default().push(id.clone());
        }
        let Some(retries) = &node.retries else { return id };
        for tier in &retries.tiers {
            let tier_id = self.id();
            let mark = mark_of_tier_arrow(retries, tier);
            self.marks.extend([tier.mark, mark].into_iter().flatten());
            let delay = escaped(&with_symbol(tier.mark, &tier.delay));
            let _ = writeln!(self.text, "  {tier_id}([\"{delay}\"])");
            let class = palette::of(palette::TIER, tier.mark, self.is_plan).class;
            self.classes.entry(class).or_default().push(tier_id.clone());
            let arrow = format!("<-.->|\"{}\"|", escaped(&tier_condition(retries, tier)));
            self.line(&id, &arrow, &tier_id, ArrowKind::Retry, mark);
        }
        id
    }

    fn arrow(&mut self, from: &str, to: &str, arrow: &Arrow) {
        let head = match arrow.kind {
            ArrowKind::Binding => "-->",
            ArrowKind::Alternate | ArrowKind::Retry | ArrowKind::DeadLetter => "-.->",
        };
        let labels: Vec<String> = labels(&arrow.labels, LONGEST).iter().map(|label| escaped(label)).collect();
        let label = if labels.is_empty() { String::new() } else { format!("|\"{}\"|", labels.join("<br/>")) };
        self.marks.extend(arrow.mark);
        self.line(from, &format!("{head}{label}"), to, arrow.kind, arrow.mark);
    }

    fn line(&mut self, from: &str, arrow: &str, to: &str, kind: ArrowKind, mark: Option<Mark>) {
        let _ = writeln!(self.text, "  {from} {arrow} {to}");
        self.kinds.insert(kind);
        let stroke = palette::of_arrow(kind);
        let dashes = match stroke.dashes {
            "" => String::new(),
            dashes => format!(",stroke-dasharray:{dashes}"),
        };
        let style = format!("stroke:{},stroke-width:1.6px{dashes}", palette::color(kind, mark, self.is_plan));
        self.styles.entry(style).or_default().push(self.arrows);
        self.arrows += 1;
    }

    /// Writes a row with an arrow of each drawn kind, and a row with a box for each mark. The legend is not a subgraph,
    /// because Mermaid would draw arrows behind it.
    fn legend(&mut self) {
        let (kinds, marks) = (self.kinds.clone(), self.marks.clone());
        let dot = |writer: &mut Self| {
            let id = writer.id();
            let _ = writeln!(writer.text, "  {id}(( ))");
            writer.classes.entry("legend").or_default().push(id.clone());
            id
        };
        let mut before = (!kinds.is_empty()).then(|| dot(self));
        for kind in kinds {
            let after = dot(self);
            let head = if kind == ArrowKind::Binding { "-->" } else { "-.->" };
            let label = format!("{head}|\"{}\"|", escaped(kind.as_str()));
            if let Some(before) = before.replace(after.clone()) {
                self.line(&before, &label, &after, kind, None);
            }
        }
        let mut before: Option<String> = None;
        for mark in marks {
            let id = self.id();
            let _ = writeln!(self.text, "  {id}([\"{}\"])", escaped(&with_symbol(Some(mark), mark.as_str())));
            self.classes.entry(palette::of_mark(mark).class).or_default().push(id.clone());
            if let Some(before) = before.replace(id.clone()) {
                // An invisible link, which counts as an arrow.
                let _ = writeln!(self.text, "  {before} ~~~ {id}");
                self.arrows += 1;
            }
        }
    }

    fn write_styles(&mut self) {
        for paint in PAINTS.iter().filter(|paint| self.classes.contains_key(paint.class)) {
            let (class, fill, stroke, ink) = (paint.class, paint.fill, paint.stroke, paint.ink);
            let _ = writeln!(self.text, "  classDef {class} fill:{fill},stroke:{stroke},color:{ink}");
        }
        if self.classes.contains_key("dashed") {
            self.text.push_str("  classDef dashed stroke-dasharray:4 3\n");
        }
        if self.classes.contains_key("legend") {
            self.text.push_str("  classDef legend fill:#a9b1bc,stroke:none\n");
        }
        for (class, ids) in &self.classes {
            let _ = writeln!(self.text, "  class {} {class}", ids.join(","));
        }
        for (style, arrows) in &self.styles {
            let arrows: Vec<String> = arrows.iter().map(ToString::to_string).collect();
            let _ = writeln!(self.text, "  linkStyle {} {style}", arrows.join(","));
        }
    }
}

/// Formats a name for a comment. Mermaid reads `%%{init` as a directive, also inside a comment, so each percent sign is
/// followed by a space.
fn comment(name: &str) -> String {
    clean(name).replace('%', "% ")
}

/// Escapes a text between quotes. Characters with a meaning in Mermaid, Markdown or HTML become named references.
/// Mermaid interprets numbered references differently.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_before_space = chars.peek().is_none_or(|next| next.is_whitespace());
        let reference = match c {
            '"' => "quot",
            '&' => "amp",
            '<' => "lt",
            '>' => "gt",
            ';' => "semi",
            // Without the zero-width space, `\n` would still end a line.
            '\\' => "bsol;&ZeroWidthSpace",
            '`' => "grave",
            '%' => "percnt",
            '*' => "ast",
            '_' => "lowbar",
            '|' => "vert",
            '[' => "lsqb",
            ']' => "rsqb",
            '{' => "lcub",
            '}' => "rcub",
            '(' => "lpar",
            ')' => "rpar",
            '$' => "dollar",
            // These characters begin headings and lists.
            '#' if is_before_space => "num",
            '+' if is_before_space => "plus",
            '-' if is_before_space => "minus",
            '.' if is_before_space => "period",
            other => {
                escaped.push(other);
                continue;
            }
        };
        let _ = write!(escaped, "&{reference};");
    }
    escaped
}

/// Reduces a text to characters that need no references, for lines in which Mermaid does not decode them.
fn plain(text: &str) -> String {
    let is_plain = |c: &char| c.is_alphanumeric() || " .-/:,".contains(*c);
    shortened(&text.chars().map(|c| if is_plain(&c) { c } else { ' ' }).collect::<String>(), 200)
}
