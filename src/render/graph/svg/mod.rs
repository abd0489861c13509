//! Renders a graph as SVG: one file with its own style sheet for light and dark pages, and without external resources.

mod boxes;
mod lines;
mod sheet;

use super::palette;
use super::words::{decimal, description, escaped, heading, with_symbol};
use crate::graph::layout::{Layout, Size, Wire, arrange};
use crate::graph::{ArrowKind, Graph, Mark, VhostGraph};
use boxes::Drawn;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The margin of the drawing.
const MARGIN: f64 = 20.0;
/// The height of the heading of a vhost, and of a line of the legend.
const HEADING: f64 = 34.0;
const LEGEND: f64 = 24.0;
/// The minimum width of the legend.
const LEAST_WIDTH: f64 = 360.0;
/// The width of a cell of a proportional font, relative to the font size.
const SANS_CELL: f64 = 0.62;

/// Renders a graph as SVG.
pub fn svg(graph: &Graph) -> String {
    let parts: Vec<Part<'_>> = graph.vhosts.iter().map(Part::of).collect();
    let inner = parts.iter().map(Part::width).fold(LEAST_WIDTH, f64::max);
    let legend = legend(graph, inner);
    let mut y = MARGIN + legend.height;
    let mut body = String::new();
    for part in &parts {
        let _ = writeln!(body, r#"<g transform="translate({} {})">"#, decimal(MARGIN), decimal(y));
        part.write(&mut body, graph.is_plan);
        body.push_str("</g>\n");
        y += part.height() + MARGIN;
    }
    let (width, height) = (decimal(inner + 2.0 * MARGIN), decimal(y));
    let description = escaped(&description(graph));
    let sheet = sheet::sheet(graph);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="topo" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="topo-title topo-desc">
<title id="topo-title">RabbitMQ topology</title>
<desc id="topo-desc">{description}</desc>
{sheet}<rect class="paper" width="{width}" height="{height}"/>
{}{body}</svg>
"#,
        legend.text,
    )
}

/// The layout of one vhost.
struct Part<'a> {
    vhost: &'a VhostGraph,
    boxes: Vec<Drawn<'a>>,
    labels: Vec<Vec<String>>,
    layout: Layout,
}

impl<'a> Part<'a> {
    fn of(vhost: &'a VhostGraph) -> Self {
        let boxes: Vec<Drawn<'_>> = vhost.nodes.iter().map(Drawn::of).collect();
        let labels: Vec<Vec<String>> = vhost.arrows.iter().map(lines::labels).collect();
        let sizes: Vec<Size> = boxes.iter().map(|drawn| drawn.size).collect();
        let wires = vhost.arrows.iter().zip(&labels);
        let wires: Vec<Wire> =
            wires.map(|(arrow, labels)| Wire { from: arrow.from, to: arrow.to, label: lines::size(labels) }).collect();
        let layout = arrange(&sizes, &wires);
        Self { vhost, boxes, labels, layout }
    }

    fn width(&self) -> f64 {
        self.layout.size.width.max(heading_width(&heading(self.vhost)))
    }

    fn height(&self) -> f64 {
        HEADING + self.layout.size.height
    }

    fn write(&self, text: &mut String, is_plan: bool) {
        let _ = writeln!(text, r#"<text class="heading" x="0" y="16">{}</text>"#, escaped(&heading(self.vhost)));
        let _ = writeln!(text, r#"<g transform="translate(0 {})">"#, decimal(HEADING));
        for ((arrow, labels), route) in self.vhost.arrows.iter().zip(&self.labels).zip(&self.layout.routes) {
            lines::write(text, (arrow, labels, route), self.vhost, is_plan);
        }
        for (drawn, corner) in self.boxes.iter().zip(&self.layout.boxes) {
            drawn.write(text, *corner, is_plan);
        }
        text.push_str("</g>\n");
    }
}

fn heading_width(heading: &str) -> f64 {
    super::words::cells(heading) as f64 * 14.0 * SANS_CELL
}

struct Legend {
    text: String,
    height: f64,
}

/// Draws the legend of the drawn kinds of arrows and, for a plan, of the marks.
fn legend(graph: &Graph, width: f64) -> Legend {
    let kinds: BTreeSet<ArrowKind> = graph.vhosts.iter().flat_map(lines::kinds).collect();
    let marks: BTreeSet<Mark> = graph.vhosts.iter().flat_map(marks).collect();
    let (mut text, mut x, mut y) = (String::new(), MARGIN, MARGIN);
    let mut place = |word: &str, sample: f64| {
        let wide = sample + 6.0 + super::words::cells(word) as f64 * 11.0 * SANS_CELL + 20.0;
        if x > MARGIN && x + wide > MARGIN + width {
            (x, y) = (MARGIN, y + LEGEND);
        }
        let at = (x, y);
        x += wide;
        at
    };
    for kind in kinds {
        let (x, y) = place(kind.as_str(), 36.0);
        lines::sample(&mut text, kind, (x, y + 8.0), graph.is_plan);
        let _ = writeln!(
            text,
            r#"<text class="key" x="{}" y="{}">{}</text>"#,
            decimal(x + 42.0),
            decimal(y + 12.0),
            kind.as_str()
        );
    }
    for mark in marks {
        let word = with_symbol(Some(mark), mark.as_str());
        let (x, y) = place(&word, 18.0);
        let class = palette::of_mark(mark).class;
        let _ = writeln!(
            text,
            r#"<rect class="{class}" x="{}" y="{}" width="18" height="12" rx="3"/>"#,
            decimal(x),
            decimal(y + 2.0)
        );
        let _ = writeln!(
            text,
            r#"<text class="key" x="{}" y="{}">{}</text>"#,
            decimal(x + 24.0),
            decimal(y + 12.0),
            escaped(&word)
        );
    }
    let height = if text.is_empty() { 0.0 } else { y - MARGIN + LEGEND + 8.0 };
    Legend { text, height }
}

fn marks(vhost: &VhostGraph) -> BTreeSet<Mark> {
    let of_nodes = vhost.nodes.iter().flat_map(|node| {
        let tiers = node.retries.iter().flat_map(|retries| retries.tiers.iter().map(|tier| tier.mark));
        tiers.chain([node.mark, node.retries.as_ref().and_then(|retries| retries.mark)])
    });
    let of_arrows =
        vhost.arrows.iter().flat_map(|arrow| arrow.labels.iter().map(|label| label.mark).chain([arrow.mark]));
    of_nodes.chain(of_arrows).flatten().collect()
}
