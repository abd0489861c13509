//! Renders a graph as DOT, for Graphviz and compatible tools.

use super::palette::{self, UNCHANGED};
use super::words::{
    arrow_tooltip, below, description, heading, labels, mark_of_tier_arrow, name, tier_condition, tooltip, with_symbol,
};
use crate::graph::{Arrow, ArrowKind, Graph, Kind, Mark, Node, VhostGraph};
use crate::render::style::clean;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum width of a name, in cells. The tooltip contains the complete name.
const MAX_WIDTH: usize = 40;

/// Renders a graph as DOT.
pub fn dot(graph: &Graph) -> String {
    let mut writer = Writer { is_plan: graph.is_plan, ..Writer::default() };
    let _ = writeln!(writer.text, "digraph topology {{");
    writer
        .text
        .push_str("  graph [rankdir=LR, nodesep=0.25, ranksep=0.6, fontname=\"Helvetica\", fontsize=12, labeljust=l");
    let _ = writeln!(writer.text, ", tooltip={}]", quote(&[description(graph)]));
    writer.text.push_str("  node [fontname=\"Helvetica\", fontsize=11, style=filled, shape=box]\n");
    writer.text.push_str("  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.7]\n");
    for (number, vhost) in graph.vhosts.iter().enumerate() {
        let _ = writeln!(writer.text, "  subgraph cluster_{number} {{");
        let _ = writeln!(writer.text, "  label={}; color=\"{}\"", quote(&[heading(vhost)]), UNCHANGED.stroke);
        writer.vhost(vhost);
        writer.text.push_str("  }\n");
    }
    writer.legend();
    writer.text.push_str("}\n");
    writer.text
}

#[derive(Default)]
struct Writer {
    text: String,
    is_plan: bool,
    ids: usize,
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
            self.arrow(from, to, arrow, vhost);
        }
    }

    /// Writes a box and returns its ID. Each tier of a queue is a separate box. A bidirectional arrow connects the
    /// queue and the tier.
    fn node(&mut self, node: &Node) -> String {
        let id = self.id();
        self.marks.extend(node.mark);
        let paint = palette::of_node(node, self.is_plan);
        let shape = match node.kind {
            Kind::Exchange | Kind::ForeignExchange => "hexagon",
            Kind::Queue | Kind::ForeignQueue => "box",
            Kind::Stream => "cylinder",
            Kind::DeadLetterQueue => "box3d",
            Kind::Tier => "box",
        };
        let style = match node.kind {
            Kind::ForeignExchange | Kind::ForeignQueue => "filled,dashed",
            Kind::Tier => "filled,rounded",
            Kind::Exchange | Kind::Queue | Kind::Stream | Kind::DeadLetterQueue if node.is_copy => "filled,dashed",
            Kind::Exchange | Kind::Queue | Kind::Stream | Kind::DeadLetterQueue => "filled",
        };
        let _ = writeln!(
            self.text,
            "  {id} [label={}, shape={shape}, style=\"{style}\", fillcolor=\"{}\", color=\"{}\", fontcolor=\"{}\", tooltip={}]",
            quote(&[name(node, MAX_WIDTH), below(node)]),
            paint.fill,
            paint.stroke,
            paint.ink,
            quote(&tooltip(node)),
        );
        let Some(retries) = &node.retries else { return id };
        for tier in &retries.tiers {
            let tier_id = self.id();
            let mark = mark_of_tier_arrow(retries, tier);
            self.marks.extend([tier.mark, mark].into_iter().flatten());
            let paint = palette::for_change(palette::TIER, tier.mark, self.is_plan);
            let _ = writeln!(
                self.text,
                "  {tier_id} [label={}, style=\"filled,rounded\", fillcolor=\"{}\", color=\"{}\", fontcolor=\"{}\", height=0.3, tooltip={}]",
                quote(&[with_symbol(tier.mark, &tier.delay)]),
                paint.fill,
                paint.stroke,
                paint.ink,
                quote(&[clean(&tier.name)]),
            );
            self.line((&id, &tier_id), (ArrowKind::Retry, true), mark, &[tier_condition(retries, tier)], &[]);
        }
        id
    }

    fn arrow(&mut self, from: &str, to: &str, arrow: &Arrow, vhost: &VhostGraph) {
        self.marks.extend(arrow.mark);
        let labels = labels(&arrow.labels, MAX_WIDTH);
        self.line((from, to), (arrow.kind, false), arrow.mark, &labels, &arrow_tooltip(arrow, vhost));
    }

    fn line(
        &mut self,
        (from, to): (&str, &str),
        (kind, is_bidirectional): (ArrowKind, bool),
        mark: Option<Mark>,
        label: &[String],
        tooltip: &[String],
    ) {
        self.kinds.insert(kind);
        let style = match kind {
            ArrowKind::Binding => "solid",
            ArrowKind::Alternate => "dashed\", arrowhead=\"onormal",
            ArrowKind::Retry => "dotted",
            ArrowKind::DeadLetter => "dashed",
        };
        let color = palette::arrow_color(kind, mark, self.is_plan);
        let _ = write!(self.text, "  {from} -> {to} [style=\"{style}\", color=\"{color}\", fontcolor=\"{color}\"");
        if is_bidirectional {
            self.text.push_str(", dir=both");
        }
        if !label.is_empty() {
            let _ = write!(self.text, ", label={}", quote(label));
        }
        if !tooltip.is_empty() {
            let _ = write!(self.text, ", tooltip={0}, labeltooltip={0}", quote(tooltip));
        }
        self.text.push_str("]\n");
    }

    /// Writes the legend: an arrow for each arrow kind in the graph, and a box for each mark.
    fn legend(&mut self) {
        let (kinds, marks) = (self.kinds.clone(), self.marks.clone());
        if kinds.is_empty() && marks.is_empty() {
            return;
        }
        let _ = writeln!(self.text, "  subgraph cluster_legend {{\n  label=\"Legend\"; color=\"{}\"", UNCHANGED.stroke);
        for kind in kinds {
            let (from, to) = (self.id(), self.id());
            let _ = writeln!(self.text, "  {from} [shape=point, style=invis]");
            let _ = writeln!(
                self.text,
                "  {to} [shape=plaintext, style=\"\", label={}]",
                quote(&[kind.as_str().to_owned()])
            );
            self.line((&from, &to), (kind, false), None, &[], &[]);
        }
        for mark in marks {
            let (id, paint) = (self.id(), palette::of_mark(mark));
            let label = quote(&[with_symbol(Some(mark), mark.as_str())]);
            let _ = writeln!(
                self.text,
                "  {id} [label={label}, fillcolor=\"{}\", color=\"{}\", fontcolor=\"{}\"]",
                paint.fill, paint.stroke, paint.ink
            );
        }
        self.text.push_str("  }\n");
    }
}

/// Quotes lines as one string. Escapes backslashes and `&`, because Graphviz interprets escape sequences and HTML
/// character references in strings.
fn quote(lines: &[String]) -> String {
    let escaped: Vec<String> =
        lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")).collect();
    format!("\"{}\"", escaped.join("\\n"))
}
