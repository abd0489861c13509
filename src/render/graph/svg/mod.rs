//! Renders a graph as SVG: one file without external resources, with a legend and a style sheet for light and dark
//! pages.

mod boxes;
mod lines;

use super::palette::{self, PAINTS, UNCHANGED};
use super::words::{decimal, description, escape_xml, heading, with_symbol};
use crate::graph::layout::{Layout, Size, Wire, arrange};
use crate::graph::{ArrowKind, Graph, Mark, VhostGraph};
use boxes::MeasuredBox;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The margin of the drawing.
const MARGIN: f64 = 20.0;
/// The height of a vhost heading.
const HEADING: f64 = 34.0;
/// The height of a line in the legend.
const LEGEND: f64 = 24.0;
/// The minimum width of the drawing and of its legend, without the margins.
const MIN_WIDTH: f64 = 360.0;
/// The average width of a character in a proportional font, relative to the font size.
const SANS_CELL: f64 = 0.62;

/// Renders a graph as SVG.
pub fn svg(graph: &Graph) -> String {
    let parts: Vec<Part<'_>> = graph.vhosts.iter().map(Part::of).collect();
    let inner = parts.iter().map(Part::width).fold(MIN_WIDTH, f64::max);
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
    let description = escape_xml(&description(graph));
    let sheet = style_sheet(graph);
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
    boxes: Vec<MeasuredBox<'a>>,
    labels: Vec<Vec<String>>,
    layout: Layout,
}

impl<'a> Part<'a> {
    fn of(vhost: &'a VhostGraph) -> Self {
        let boxes: Vec<MeasuredBox<'_>> = vhost.nodes.iter().map(MeasuredBox::of).collect();
        let labels: Vec<Vec<String>> = vhost.arrows.iter().map(lines::labels).collect();
        let sizes: Vec<Size> = boxes.iter().map(|node| node.size).collect();
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
        let _ = writeln!(text, r#"<text class="heading" x="0" y="16">{}</text>"#, escape_xml(&heading(self.vhost)));
        let _ = writeln!(text, r#"<g transform="translate(0 {})">"#, decimal(HEADING));
        for ((arrow, labels), route) in self.vhost.arrows.iter().zip(&self.labels).zip(&self.layout.routes) {
            lines::write(text, (arrow, labels, route), self.vhost, is_plan);
        }
        for (node, corner) in self.boxes.iter().zip(&self.layout.boxes) {
            node.write(text, *corner, is_plan);
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

/// Draws the legend: a sample of each arrow kind in the graph and, for a plan, of each mark.
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
            escape_xml(&word)
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

const SHAPES: &str = "\
.topo text{fill:#57606a;font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:10px}
.topo .heading{fill:#24292f;font-size:14px;font-weight:600}
.topo .key{font-size:11px}
.topo .name,.topo .label,.topo .delay{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
.topo .name{font-size:12px;font-weight:600;text-anchor:middle}
.topo .below,.topo .delay,.topo .way{text-anchor:middle}
.topo .delay{font-size:11px}
.topo .label{font-size:10.5px}
.topo .way{font-size:9px}
.topo rect,.topo polygon{stroke-width:1.3}
.topo .inner,.topo .then{fill:none;stroke-width:1}
.topo .dashed rect,.topo .dashed polygon{stroke-dasharray:4 3}
.topo .frame{fill:none;stroke-dasharray:2 3}
.topo .arrow{stroke-width:1.4}
.topo path.arrow{fill:none}
.topo text.arrow{stroke:none}
";

/// The colors of boxes on a dark page, by class: background, border, text.
const DARK: [(&str, &str, &str, &str); 12] = [
    ("exchange", "#14263f", "#5b93e0", "#cfe1fb"),
    ("queue", "#13291a", "#55b070", "#cdeed7"),
    ("stream", "#0d2b2f", "#48aab5", "#c6ecf0"),
    ("tier", "#33260c", "#d9a441", "#f7e3bd"),
    ("dead", "#351714", "#e0685e", "#fbd5d1"),
    ("foreign", "#1f2329", "#7d8590", "#c9d1d9"),
    ("unchanged", "#1b1f25", "#59626d", "#aab3bd"),
    ("created", "#0f2f1a", "#3fb950", "#c8f2d2"),
    ("changed", "#332900", "#d9a800", "#f7e9b0"),
    ("recreated", "#231b47", "#a492f0", "#e3dcff"),
    ("deleted", "#3a1214", "#f85149", "#ffd9d6"),
    ("conflict", "#3a0b27", "#e0559f", "#ffd3ea"),
];

/// The colors of arrows on a dark page, by class.
const DARK_ARROWS: [(&str, &str); 4] =
    [("binding", "#9aa7b8"), ("alternate", "#b392f0"), ("retry", "#d9a441"), ("dead-letter", "#f0776d")];

/// Returns the style sheet and the definitions of the arrowheads.
fn style_sheet(graph: &Graph) -> String {
    let mut text = format!("<style>\n{SHAPES}");
    for kind in ArrowKind::ALL {
        let stroke = palette::of_arrow(kind);
        let _ = writeln!(text, ".topo path.{}{{stroke-dasharray:{}}}", stroke.class, or_none(stroke.dashes));
    }
    text.push_str(".topo .paper{fill:#ffffff;stroke:none}\n");
    for kind in ArrowKind::ALL {
        arrow(&mut text, palette::of_arrow(kind).class, palette::of_arrow(kind).color);
    }
    for paint in PAINTS {
        node(&mut text, paint.class, (paint.fill, paint.stroke, paint.ink));
    }
    text.push_str("@media (prefers-color-scheme:dark){\n");
    text.push_str(".topo .paper{fill:#0d1117}\n.topo text{fill:#9da7b3}\n.topo .heading{fill:#e6edf3}\n");
    for (class, color) in DARK_ARROWS {
        arrow(&mut text, class, color);
    }
    for (class, fill, stroke, ink) in DARK {
        node(&mut text, class, (fill, stroke, ink));
    }
    text.push_str("}\n</style>\n<defs>\n");
    let of_retries = |node: &crate::graph::Node| node.retries.as_ref().map(|retries| (ArrowKind::Retry, retries.mark));
    let drawn = graph.vhosts.iter().flat_map(|vhost| {
        let arrows = vhost.arrows.iter().map(|arrow| (arrow.kind, arrow.mark));
        arrows.chain(vhost.nodes.iter().filter_map(of_retries))
    });
    let all = drawn.chain(graph.vhosts.iter().flat_map(lines::kinds).map(|kind| (kind, None)));
    let heads: BTreeSet<String> = all.map(|(kind, mark)| lines::head(kind, mark, graph.is_plan)).collect();
    for head in heads {
        let _ = writeln!(
            text,
            r#"<marker id="{head}" class="{head}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .8L8 4L0 7.2z"/></marker>"#
        );
    }
    text.push_str("</defs>\n");
    text
}

fn or_none(dashes: &str) -> &str {
    if dashes.is_empty() { "none" } else { dashes }
}

fn arrow(text: &mut String, class: &str, color: &str) {
    let _ = writeln!(text, ".topo path.{class}{{stroke:{color}}}");
    let _ = writeln!(text, ".topo text.{class},.topo .topo-{class} path{{fill:{color}}}");
}

fn node(text: &mut String, class: &str, (fill, stroke, ink): (&str, &str, &str)) {
    let shapes = ["rect", "polygon"].map(|shape| format!(".topo .{class}>{shape}")).join(",");
    let _ = writeln!(text, "{shapes},.topo rect.{class}{{fill:{fill};stroke:{stroke}}}");
    let _ = writeln!(text, ".topo .{class}>.frame{{fill:none}}");
    let _ = writeln!(text, ".topo .{class}>.inner,.topo .{class}>.then,.topo path.to-be-{class}{{stroke:{stroke}}}");
    let _ = writeln!(text, ".topo .{class}>text{{fill:{ink}}}");
    // Unchanged arrows are faint, but their labels must be readable.
    let label = if class == UNCHANGED.class { ink } else { stroke };
    let _ = writeln!(text, ".topo text.to-be-{class}{{fill:{label}}}\n.topo .topo-{class} path{{fill:{stroke}}}");
}
