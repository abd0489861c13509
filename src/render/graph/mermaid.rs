//! Renders a graph as Mermaid, which GitHub and GitLab draw in Markdown.

use super::palette::{self, PAINTS};
use super::words::{
    below, cells, description, heading, labels, mark_of_tier_arrow, name, shorten, tier_condition, with_symbol,
};
use crate::graph::{Arrow, ArrowKind, Graph, Kind, Mark, Node, VhostGraph};
use crate::render::style::clean;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The maximum width of a name or an arrow label, in cells. Mermaid has no tooltips, so a comment contains the complete
/// name of a box that is not a stack.
const MAX_WIDTH: usize = 60;
/// The maximum number of arrows that GitHub draws (`maxEdges`).
pub const MAX_ARROWS: usize = 500;
/// The maximum number of characters that GitHub accepts (`maxTextSize`).
pub const MAX_CHARACTERS: usize = 50_000;

/// Renders a graph as Mermaid, and returns the text and the number of arrows.
pub fn mermaid(graph: &Graph) -> (String, usize) {
    let mut writer = Writer { is_plan: graph.is_plan, ..Writer::default() };
    let _ = writeln!(writer.text, "flowchart LR");
    let _ = writeln!(writer.text, "  accTitle: {}", plain("RabbitMQ topology"));
    let _ = writeln!(writer.text, "  accDescr: {}", plain(&description(graph)));
    let is_titled = graph.vhosts.len() > 1;
    for vhost in &graph.vhosts {
        if is_titled {
            let id = writer.id();
            let _ = writeln!(writer.text, "  subgraph {id}[\"{}\"]", escape(&heading(vhost)));
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
    /// The indexes of the arrows, by style.
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

    /// Writes a box and returns its ID. Each tier of a queue is a separate box. A bidirectional arrow connects the
    /// queue and the tier.
    fn node(&mut self, node: &Node) -> String {
        let id = self.id();
        self.marks.extend(node.mark);
        let shown = name(node, MAX_WIDTH);
        if node.stacks.is_empty() && cells(&clean(&node.name)) > MAX_WIDTH {
            let _ = writeln!(self.text, "  %% {id}: {}", comment(&node.name));
        }
        let label = format!("{}<br/>{}", escape(&shown), escape(&below(node)));
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
            let delay = escape(&with_symbol(tier.mark, &tier.delay));
            let _ = writeln!(self.text, "  {tier_id}([\"{delay}\"])");
            let class = palette::for_change(palette::TIER, tier.mark, self.is_plan).class;
            self.classes.entry(class).or_default().push(tier_id.clone());
            let arrow = format!("<-.->|\"{}\"|", escape(&tier_condition(retries, tier)));
            self.line(&id, &arrow, &tier_id, ArrowKind::Retry, mark);
        }
        id
    }

    fn arrow(&mut self, from: &str, to: &str, arrow: &Arrow) {
        let head = match arrow.kind {
            ArrowKind::Binding => "-->",
            ArrowKind::Alternate | ArrowKind::Retry | ArrowKind::DeadLetter => "-.->",
        };
        let labels: Vec<String> = labels(&arrow.labels, MAX_WIDTH).iter().map(|label| escape(label)).collect();
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
        let color = palette::arrow_color(kind, mark, self.is_plan);
        let style = format!("stroke:{color},stroke-width:1.6px{dashes}");
        self.styles.entry(style).or_default().push(self.arrows);
        self.arrows += 1;
    }

    /// Writes the legend: a row with an arrow for each arrow kind in the graph, and a row with a box for each mark. The
    /// legend is not a subgraph, because Mermaid would draw its arrows behind the background of the subgraph.
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
            let label = format!("{head}|\"{}\"|", escape(kind.as_str()));
            if let Some(before) = before.replace(after.clone()) {
                self.line(&before, &label, &after, kind, None);
            }
        }
        let mut before: Option<String> = None;
        for mark in marks {
            let id = self.id();
            let _ = writeln!(self.text, "  {id}([\"{}\"])", escape(&with_symbol(Some(mark), mark.as_str())));
            self.classes.entry(palette::of_mark(mark).class).or_default().push(id.clone());
            if let Some(before) = before.replace(id.clone()) {
                // Mermaid counts an invisible link as an arrow.
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

/// Formats a name for a comment. Adds a space after each percent sign, because Mermaid parses `%%{init` as a directive
/// even inside a comment.
fn comment(name: &str) -> String {
    clean(name).replace('%', "% ")
}

/// Escapes a quoted string. Replaces characters that have a special meaning in Mermaid, Markdown or HTML with named
/// character references, because Mermaid interprets numeric references differently.
fn escape(text: &str) -> String {
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
            // Before a space, these characters start headings and list items.
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

/// Replaces special characters with spaces, for lines in which Mermaid does not decode character references. Also
/// shortens a long string.
fn plain(text: &str) -> String {
    let is_plain = |c: &char| c.is_alphanumeric() || " .-/:,".contains(*c);
    shorten(&text.chars().map(|c| if is_plain(&c) { c } else { ' ' }).collect::<String>(), 200)
}
