//! Measures and draws boxes. The tiers of a queue are in a separate box next to the queue, with an arrow in each
//! direction.

use crate::graph::layout::{Point, Size};
use crate::graph::{ArrowKind, Kind, Node, Retries, Tier};
use crate::render::graph::palette::{self, TIER};
use crate::render::graph::words::{below, cells, decimal, escape_xml, name, tooltip, with_symbol};
use crate::render::style::{clean, wrap};
use std::fmt::Write;

/// The maximum width of a name, in cells. The tooltip contains the complete name.
const MAX_WIDTH: usize = 36;
/// The maximum width of a line below the name, in cells.
const MAX_WIDTH_BELOW: usize = 38;
/// The width of a cell in the name.
const NAME_CELL: f64 = 7.4;
/// The width of a cell in the lines below the name.
const BELOW_CELL: f64 = 6.0;
const BELOW_LINE: f64 = 13.0;
/// The distance between a queue and its tiers, with room for two arrows and their labels.
const BETWEEN: f64 = 74.0;
const TIER_HEIGHT: f64 = 22.0;
const TIER_GAP: f64 = 16.0;
const TIER_CELL: f64 = 6.8;
const TIERS_PER_ROW: usize = 6;
/// The maximum number of tiers to draw.
const MAX_TIERS: usize = 12;
/// The offset between the boxes of a stack.
const STACK: f64 = 4.0;

/// A measured box.
pub(super) struct MeasuredBox<'a> {
    node: &'a Node,
    name: String,
    below: Vec<String>,
    /// The size of the box without its tiers and without the other boxes of its stack.
    box_size: Size,
    tiers: Option<Tiers>,
    /// The total size.
    pub(super) size: Size,
}

/// The measured tiers of a queue.
struct Tiers {
    /// The text, position, width and tier of each label. Omitted tiers share a label without a tier.
    pills: Vec<(String, Point, f64, Option<Tier>)>,
    size: Size,
}

impl<'a> MeasuredBox<'a> {
    pub(super) fn of(node: &'a Node) -> Self {
        let name = name(node, MAX_WIDTH);
        // A copy has no lines below its name, because the original box has them.
        let parts: Vec<String> =
            if node.is_copy { Vec::new() } else { below(node).split(" · ").map(str::to_owned).collect() };
        let below = wrap(&parts, " · ", MAX_WIDTH_BELOW);
        let widest =
            below.iter().map(|line| cells(line) as f64 * BELOW_CELL).fold(cells(&name) as f64 * NAME_CELL, f64::max);
        let padding = match node.kind {
            Kind::Exchange | Kind::ForeignExchange => 36.0,
            Kind::Stream => 46.0,
            Kind::Queue | Kind::ForeignQueue | Kind::DeadLetterQueue | Kind::Tier => 28.0,
        };
        let box_size = Size { width: (widest + padding).max(84.0), height: 29.0 + below.len() as f64 * BELOW_LINE };
        let tiers = node.retries.as_ref().map(Tiers::of);
        let stack = if node.stacks.is_empty() { 0.0 } else { 2.0 * STACK };
        let extra = stack + tiers.as_ref().map_or(0.0, |tiers| BETWEEN + tiers.size.width);
        let height = tiers.as_ref().map_or(0.0, |tiers| tiers.size.height);
        let size = Size { width: box_size.width + extra, height: (box_size.height + stack).max(height) };
        Self { node, name, below, box_size, tiers, size }
    }

    pub(super) fn write(&self, text: &mut String, corner: Point, is_plan: bool) {
        let node = self.node;
        let class = palette::of_node(node, is_plan).class;
        let is_dashed = node.is_copy || matches!(node.kind, Kind::ForeignExchange | Kind::ForeignQueue);
        let dashed = if is_dashed { " dashed" } else { "" };
        let stack = if node.stacks.is_empty() { 0.0 } else { STACK };
        let y = corner.y + (self.size.height - self.box_size.height) / 2.0 - stack;
        let _ = writeln!(
            text,
            r#"<g class="node {class}{dashed}" transform="translate({} {})">"#,
            decimal(corner.x),
            decimal(y)
        );
        let _ = writeln!(text, "<title>{}</title>", escape_xml(&tooltip(node).join("\n")));
        let (width, height) = (decimal(self.box_size.width), decimal(self.box_size.height));
        for behind in [2.0 * stack, stack] {
            if behind > 0.0 {
                let at = decimal(behind);
                let _ = writeln!(
                    text,
                    r#"<rect class="behind" x="{at}" y="{at}" width="{width}" height="{height}" rx="5"/>"#
                );
            }
        }
        self.shape(text);
        let middle = decimal(self.box_size.width / 2.0);
        let _ = writeln!(text, r#"<text class="name" x="{middle}" y="18">{}</text>"#, escape_xml(&self.name));
        for (line, y) in self.below.iter().zip(1..) {
            let y = decimal(18.0 + f64::from(y) * BELOW_LINE);
            let _ = writeln!(text, r#"<text class="below" x="{middle}" y="{y}">{}</text>"#, escape_xml(line));
        }
        text.push_str("</g>\n");
        if let (Some(tiers), Some(retries)) = (&self.tiers, &node.retries) {
            self.retry_arrows(text, corner, retries, is_plan);
            let at = Point {
                x: corner.x + self.size.width - tiers.size.width,
                y: corner.y + (self.size.height - tiers.size.height) / 2.0,
            };
            tiers.write(text, at, retries, is_plan);
        }
    }

    /// Writes the outline. The shape of the outline identifies the kind of the object without colors.
    fn shape(&self, text: &mut String) {
        let (w, h) = (self.box_size.width, self.box_size.height);
        let rect = |text: &mut String, rx: f64| {
            let _ = writeln!(text, r#"<rect width="{}" height="{}" rx="{}"/>"#, decimal(w), decimal(h), decimal(rx));
        };
        match self.node.kind {
            Kind::Exchange | Kind::ForeignExchange => {
                let corners = [(12.0, 0.0), (w - 12.0, 0.0), (w, h / 2.0), (w - 12.0, h), (12.0, h), (0.0, h / 2.0)];
                let points: Vec<String> =
                    corners.iter().map(|(x, y)| format!("{},{}", decimal(*x), decimal(*y))).collect();
                let _ = writeln!(text, r#"<polygon points="{}"/>"#, points.join(" "));
            }
            Kind::Queue | Kind::ForeignQueue => rect(text, 5.0),
            Kind::DeadLetterQueue => {
                rect(text, 2.0);
                let (left, right, h) = (decimal(5.0), decimal(w - 5.0), decimal(h));
                let _ = writeln!(text, r#"<path class="inner" d="M{left} 0V{h}M{right} 0V{h}"/>"#);
            }
            Kind::Stream => {
                rect(text, h / 2.0);
                let _ = writeln!(
                    text,
                    r#"<path class="inner" d="M{} 3q{} {} 0 {}"/>"#,
                    decimal(w - 16.0),
                    decimal(9.0),
                    decimal(h / 2.0 - 3.0),
                    decimal(h - 6.0)
                );
            }
            Kind::Tier => rect(text, 14.0),
        }
    }

    /// Writes the arrows to the tiers and back.
    fn retry_arrows(&self, text: &mut String, corner: Point, retries: &Retries, is_plan: bool) {
        let right = corner.x + self.size.width - self.tiers.as_ref().map_or(0.0, |tiers| tiers.size.width);
        let left = right - BETWEEN;
        let middle = corner.y + self.size.height / 2.0;
        let class = super::lines::class(ArrowKind::Retry, retries.mark, is_plan);
        let head = super::lines::head(ArrowKind::Retry, retries.mark, is_plan);
        for (from, to, y) in [(left, right, middle - 6.0), (right, left, middle + 6.0)] {
            let (from, to, y) = (decimal(from), decimal(to), decimal(y));
            let _ = writeln!(text, r#"<path class="{class}" d="M{from} {y}H{to}" marker-end="url(#{head})"/>"#);
        }
        let x = decimal((left + right) / 2.0);
        for (word, y) in [(retries.out.as_str(), middle - 11.0), ("back", middle + 17.0)] {
            let _ = writeln!(text, r#"<text class="way {class}" x="{x}" y="{}">{word}</text>"#, decimal(y));
        }
    }
}

impl Tiers {
    fn of(retries: &Retries) -> Self {
        let all = retries.tiers.len();
        let shown = |tier: &Tier| (with_symbol(tier.mark, &tier.delay), Some(tier.clone()));
        let mut words: Vec<(String, Option<Tier>)> = retries.tiers.iter().map(shown).collect();
        if all > MAX_TIERS {
            words.splice(MAX_TIERS - 2..all - 1, [(format!("… {} more", all + 1 - MAX_TIERS), None)]);
        }
        let (mut pills, mut size) = (Vec::new(), Size::default());
        let (mut x, mut y) = (9.0, 7.0);
        for (index, (word, tier)) in words.into_iter().enumerate() {
            if index > 0 && index % TIERS_PER_ROW == 0 {
                (x, y) = (9.0, y + TIER_HEIGHT + 7.0);
            }
            let width = (cells(&word) as f64 * TIER_CELL + 16.0).max(34.0);
            pills.push((word, Point { x, y }, width, tier));
            size.width = size.width.max(x + width + 9.0);
            size.height = y + TIER_HEIGHT + 7.0;
            x += width + TIER_GAP;
        }
        Self { pills, size }
    }

    fn write(&self, text: &mut String, corner: Point, retries: &Retries, is_plan: bool) {
        let class = palette::for_change(TIER, retries.mark, is_plan).class;
        let _ = writeln!(
            text,
            r#"<g class="tiers {class}" transform="translate({} {})">"#,
            decimal(corner.x),
            decimal(corner.y)
        );
        let (width, height) = (decimal(self.size.width), decimal(self.size.height));
        let _ = writeln!(text, r#"<rect class="frame" width="{width}" height="{height}" rx="8"/>"#);
        for pair in self.pills.windows(2) {
            let ((_, one, width, tier), (_, other, _, next)) = (&pair[0], &pair[1]);
            // In a plan, a deleted tier and a created tier can belong to the same retry. Such tiers have no arrow
            // between them.
            let is_same = tier.as_ref().zip(next.as_ref()).is_some_and(|(tier, next)| tier.number == next.number);
            if one.y == other.y && !is_same {
                let (x, y) = (decimal(one.x + width + 5.5), decimal(one.y + TIER_HEIGHT / 2.0 - 4.0));
                let _ = writeln!(text, r#"<path class="then" d="M{x} {y}l4.5 4l-4.5 4"/>"#);
            }
        }
        for (word, at, width, tier) in &self.pills {
            let mark = tier.as_ref().and_then(|tier| tier.mark);
            let class = palette::for_change(TIER, mark, is_plan).class;
            let _ = writeln!(
                text,
                r#"<g class="pill {class}" transform="translate({} {})">"#,
                decimal(at.x),
                decimal(at.y)
            );
            if let Some(tier) = tier {
                let _ = writeln!(
                    text,
                    "<title>{}\nwaits {}</title>",
                    escape_xml(&clean(&tier.name)),
                    escape_xml(&tier.delay)
                );
            }
            let (wide, middle) = (decimal(*width), decimal(width / 2.0));
            let _ = writeln!(text, r#"<rect width="{wide}" height="{TIER_HEIGHT}" rx="11"/>"#);
            let _ = writeln!(text, r#"<text class="delay" x="{middle}" y="15">{}</text></g>"#, escape_xml(word));
        }
        text.push_str("</g>\n");
    }
}
